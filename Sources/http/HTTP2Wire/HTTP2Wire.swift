// HTTP/2 of a server without sockets, by nghttp2.
//
//   HTTP2Session        a connection: bytes in, news of streams out; responses in, bytes out
//   HTTP2Channel        a stream of it: the request's head and content, the response's content
//   RequestHeadBuilder  writes a request's fields as an HTTP/1.1 head, which HTTPWire reads
//   HeadMemory          lends the memory for that to one connection after the other
//   HTTP2FrameWalk      finds where frames begin
//   HTTP2Ledger         counts what a client does that costs it less than the gateway
//   HTTP2Limits         the bounds of all that
//
// The driver feeds bytes with `receive(_:now:)`, takes channels with news by `nextNews()`, and
// takes bytes for the peer with `send(into:atMost:now:)`.
//
// nghttp2 calls back while it reads or writes. A callback notes what has happened, in this module's
// own values, and calls nobody else. So nothing that a callback leads to can call the session while
// nghttp2 is at work in it, which nghttp2 forbids.
//
// What is refused and by whom. nghttp2 refuses what RFC 9113 §8 calls malformed: pseudo-fields that
// are missing, repeated, unknown or late, upper-case names, fields of one connection, `te` other
// than `trailers`, a byte that no name or value has, content whose length is not its
// Content-Length. The stream then ends with PROTOCOL_ERROR. All else is refused by the one parser
// of HTTPWire, with a problem document. The builder checks once more what could end a line.
