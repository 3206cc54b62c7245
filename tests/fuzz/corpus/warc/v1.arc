filedesc://x.arc 0.0.0.0 20140216050221 text/plain 8
1 0 x
U

http://a/b c 1.2.3.4 20140216050221 text/html 20
HTTP/1.0 200 OK

ab

dns:a 1.2.3.4 20140216 text/dns 1
x
