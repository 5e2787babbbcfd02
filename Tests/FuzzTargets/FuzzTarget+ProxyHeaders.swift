import HTTPWire

extension FuzzTarget {
    /// The header of the PROXY protocol: it has one end, whatever comes behind it and however it
    /// comes; and who it names reads again when it is written.
    static func proxyHeaders(_ bytes: [UInt8]) {
        var verdict: Result<ProxyHeader.Reading, MalformedProxyHeader>?
        for count in 0...min(bytes.count, ProxyHeader.byteCountMax + 64) {
            let reading = Result { () throws(MalformedProxyHeader) in
                try ProxyHeader.read(bytes.span.extracting(first: count))
            }
            if let verdict {
                demand(reading == verdict, "bytes behind a header, or a fault, change nothing")
            } else if reading != .success(.needMore) {
                verdict = reading
            }
        }
        guard case .success(.complete(let byteCount, let source))? = verdict else {
            let isTooLong = bytes.count >= ProxyHeader.byteCountMax && verdict == nil
            demand(!isTooLong, "no header goes on for ever")
            return
        }
        demand((1...ProxyHeader.byteCountMax).contains(byteCount), "a header is bounded")
        guard case .client(let address, let port) = source else { return }
        let ends = [IPAddress.v4(1), .v6(high: 1, low: 2)].map { ProxyHeader.End($0, port: 443) }
        for destination in ends {
            var written: [UInt8] = []
            let client = ProxyHeader.End(address, port: port)
            ProxyHeader.append((source: client, destination: destination), to: &written)
            let again = try? ProxyHeader.read(written.span)
            demand(
                again == .complete(byteCount: written.count, source),
                "who is written reads again"
            )
        }
    }
}
