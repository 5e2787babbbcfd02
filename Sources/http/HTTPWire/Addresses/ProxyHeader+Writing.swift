extension ProxyHeader {
    /// One end of the connection that a header is about.
    package struct End: Hashable, Sendable {
        package let address: IPAddress
        package let port: UInt16

        package init(_ address: IPAddress, port: UInt16) {
            self.address = address
            self.port = port
        }
    }

    /// Appends a header of version 2: the command PROXY with both ends, or LOCAL without.
    ///
    /// Ends of two families are written as IPv6, the IPv4 one as `::ffff:a.b.c.d`.
    package static func append(_ ends: (source: End, destination: End)?, to out: inout [UInt8]) {
        out.append(contentsOf: signature)
        guard let ends else {
            out.append(contentsOf: [0x20, 0x00, 0x00, 0x00])
            return
        }
        out.append(0x21)
        switch (ends.source.address, ends.destination.address) {
        case (.v4(let source), .v4(let destination)):
            out.append(contentsOf: [0x11, 0x00, 12])
            append(UInt64(source), 4, to: &out)
            append(UInt64(destination), 4, to: &out)
        case (let source, let destination):
            out.append(contentsOf: [0x21, 0x00, 36])
            for address in [source, destination] {
                switch address {
                case .v4(let address):
                    append(0, 8, to: &out)
                    append(0xFFFF << 32 | UInt64(address), 8, to: &out)
                case .v6(let high, let low):
                    append(high, 8, to: &out)
                    append(low, 8, to: &out)
                }
            }
        }
        append(UInt64(ends.source.port), 2, to: &out)
        append(UInt64(ends.destination.port), 2, to: &out)
    }

    private static func append(_ number: UInt64, _ byteCount: Int, to out: inout [UInt8]) {
        for place in (0..<byteCount).reversed() {
            out.append(UInt8(truncatingIfNeeded: number >> UInt64(place * 8)))
        }
    }
}
