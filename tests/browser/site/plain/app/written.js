results.writtenScript = true;
