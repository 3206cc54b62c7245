filedesc://x 0.0.0.0 20140216050221 text/plain -1
1 0 x

http://a/ 1.2.3.4 201402160502210000 text/html abc

http://a/ 1.2.3.4 20140216050221 text/html 1
x
