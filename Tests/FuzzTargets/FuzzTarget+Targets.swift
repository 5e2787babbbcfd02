import HTTPWire

extension FuzzTarget {
    /// A path and its view: read twice it is the same, and written out and read again as well.
    static func targets(_ octets: [UInt8]) {
        var view = TargetView()
        view.read(octets.span, 0..<octets.count)
        let first = Viewed(view)
        view.read([UInt8]("/another/%2e%2E;x//".utf8).span, 0..<19)
        view.read(octets.span, 0..<octets.count)
        demand(first == Viewed(view), "a view does not depend on the one before it")
        guard view.refusal() == nil else {
            demand(
                view.refusal(allowing: .readingDependent) == view.refusal(),
                "what can't be allowed is refused all the same"
            )
            return
        }
        // Every octet of every segment escaped: another spelling of the same path.
        var spelled = [UInt8](view.segmentCount() == 0 ? "/".utf8 : "".utf8)
        for segment in first.exact {
            spelled.append(UInt8(ascii: "/"))
            for octet in segment {
                spelled.append(UInt8(ascii: "%"))
                spelled += [octet >> 4, octet & 15].map { $0 < 10 ? 0x30 + $0 : 0x37 + $0 }
            }
        }
        var again = TargetView()
        again.read(spelled.span, 0..<spelled.count)
        demand(first == Viewed(again), "escaping octets does not change what rules match")
    }

    /// What rules see of a path.
    private struct Viewed: Equatable {
        let exact: [[UInt8]]
        let merged: [[UInt8]]
        let findings: PathConstructs

        init(_ view: TargetView) {
            exact = (0..<view.segmentCount(.exact)).map { Array(view.octets[view.segment($0)]) }
            merged = (0..<view.segmentCount(.merged)).map {
                Array(view.octets[view.segment($0, .merged)])
            }
            findings = view.findings
        }
    }

    /// Addresses, networks, and who the client is; a line of each field in an otherwise fixed head.
    static func addresses(_ octets: [UInt8]) {
        if let address = IPAddress(octets.span, 0..<octets.count) {
            demand(IPAddress(address.text) == address, "an address reads again: \(address.text)")
        }
        let text = String(decoding: octets, as: UTF8.self)
        if let network = IPNetwork(text) {
            demand(network.contains(network.address), "a network holds its own address")
        }
        for name in ["X-Forwarded-For", "Forwarded"] {
            let head =
                Array("GET / HTTP/1.1\r\nHost: a\r\n\(name): ".utf8) + octets
                + Array("\r\n\r\n".utf8)
            var read = RequestHead()
            guard (try? read.read(head.span, isSecure: false, limits: HeadLimits())) != nil else {
                continue
            }
            find(read, head, name == "Forwarded" ? .forwarded : .xForwardedFor)
        }
    }

    private static func find(
        _ head: borrowing RequestHead,
        _ octets: [UInt8],
        _ source: ClientAddress.Source
    ) {
        let peer = IPAddress.v4(0x7F00_0001)
        var asked: [IPAddress] = []
        func client(trusts: (IPAddress) -> Bool) -> IPAddress {
            asked = []
            return ClientAddress.find(head.fields, octets.span, source: source, peer: peer) {
                asked.append($0)
                return trusts($0)
            }
        }
        demand(client { _ in false } == peer, "the word of a stranger does not count")
        // The list may name the peer once more, so its place counts and not its address.
        let nearest = client { _ in asked.count == 1 }
        let farthest = client { _ in true }
        demand(asked.first == peer && asked.last == farthest, "the peer is asked about first")
        demand(asked.count <= 17, "hops are bounded")
        demand(asked.count > 1 ? nearest == asked[1] : nearest == peer, "one hop is one step")
    }
}
