package main

const usage = "usage: quic-go recv (--listen IP:PORT --cert FILE --key FILE | --connect IP:PORT (--duration-s X | --bytes N)) --out DIR\n       quic-go send (the same) --controller cubic|reno --out DIR"

var roles = map[string]role{"recv": {isEither, receive}, "send": {isEither, send}}

func isEither(a arguments) bool { return isServer(a) || isClient(a) }
