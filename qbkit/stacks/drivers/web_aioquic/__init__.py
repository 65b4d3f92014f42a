"""aioquic's HTTP/3 client loads one object."""
