import HTTPWire

extension FuzzTarget {
    /// A path and its view: read twice it is the same, and written out and read again as well.
    static func targets(_ bytes: [UInt8]) {
        var view = TargetView()
        view.read(bytes.span, 0..<bytes.count)
        let first = Viewed(view)
        view.read([UInt8]("/another/%2e%2E;x//".utf8).span, 0..<19)
        view.read(bytes.span, 0..<bytes.count)
        demand(first == Viewed(view), "a view does not depend on the one before it")
        guard view.refusal() == nil else {
            demand(
                view.refusal(allowing: .readingDependent) == view.refusal(),
                "what can't be allowed is refused all the same"
            )
            return
        }
        // Every byte of every segment escaped: another spelling of the same path.
        var spelled = [UInt8](view.segmentCount == 0 ? "/".utf8 : "".utf8)
        for segment in first.exact {
            spelled.append(UInt8(ascii: "/"))
            for byte in segment {
                spelled.append(UInt8(ascii: "%"))
                spelled += [byte >> 4, byte & 15].map { $0 < 10 ? 0x30 + $0 : 0x37 + $0 }
            }
        }
        var again = TargetView()
        again.read(spelled.span, 0..<spelled.count)
        demand(
            first.exact == Viewed(again).exact,
            "escaping bytes does not change what rules match"
        )
    }

    /// What rules see of a path.
    private struct Viewed: Equatable {
        let exact: [[UInt8]]
        let findings: PathConstructs
        var readings: [[UInt8]] = []

        init(_ view: TargetView) {
            var view = view
            exact = (0..<view.segmentCount).map { Array(view.bytes[view.segment($0)]) }
            findings = view.findings
            var readings: [[UInt8]] = []
            let steps = view.steps(of: .all)
            _ = view.visitInterpretations(steps, odd: [], depth: 8) { reading, bytes, ends in
                readings.append(bytes.withUnsafeBufferPointer { Array($0) })
                demand(ends.indices.allSatisfy { Int(ends[$0]) <= bytes.count }, "ends fit")
                demand(reading != .asWritten, "as written is no other reading")
                return true
            }
            self.readings = readings
        }
    }

    /// Addresses, networks, and who the client is; a line of each field in an otherwise fixed head.
    static func addresses(_ bytes: [UInt8]) {
        if let address = IPAddress(bytes.span, 0..<bytes.count) {
            demand(IPAddress(address.text) == address, "an address reads again: \(address.text)")
        }
        let text = String(decoding: bytes, as: UTF8.self)
        if let network = IPNetwork(text) {
            demand(network.contains(network.address), "a network holds its own address")
        }
        let sources: [(String, ClientAddress.Source)] = [
            ("X-Forwarded-For", .xForwardedFor), ("Forwarded", .forwarded),
        ]
        for (name, source) in sources {
            let line = Array("\(name): ".utf8) + bytes
            var head = RequestHead()
            guard let all = read(line, into: &head) else { continue }
            find(head, all, source)
            findAppended(to: line, name, source)
        }
    }

    /// The bytes of a head with this line, if it can be read.
    private static func read(_ line: [UInt8], into head: inout RequestHead) -> [UInt8]? {
        let all =
            Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8) + line + Array("\r\n\r\n".utf8)
        guard (try? head.read(all.span, isSecure: false, limits: HeadLimits())) != nil else {
            return nil
        }
        return all
    }

    /// Whatever a client has written, the address is read that a trusted proxy appends, in the same
    /// line or in one of its own.
    private static func findAppended(
        to line: [UInt8],
        _ name: String,
        _ source: ClientAddress.Source
    ) {
        let entry =
            source == .xForwardedFor
            ? "[2001:db8::7]:443"
            : #"proto=https;for="[2001:db8::7]:443";host="a,\"b;for=x\\""#
        let peer = IPAddress.v4(0x7F00_0001)
        // Behind an input of several lines, a comma would stand in a field of another name.
        let isOneLine = !line.contains(UInt8(ascii: "\n"))
        let separators = (isOneLine ? [", ", ","] : []) + ["\r\n\(name): "]
        for separator in separators {
            var head = RequestHead()
            guard let all = read(line + Array((separator + entry).utf8), into: &head) else {
                continue
            }
            var address = ClientAddress()
            address.read(head.fields, all.span, source: source, peer: peer) { $0 == peer }
            demand(
                address.client == IPAddress("2001:db8::7"),
                "what a proxy appends is read, whatever stands before it"
            )
        }
    }

    private static func find(
        _ head: borrowing RequestHead,
        _ bytes: [UInt8],
        _ source: ClientAddress.Source
    ) {
        let peer = IPAddress.v4(0x7F00_0001)
        var asked: [IPAddress] = []
        var address = ClientAddress()
        func client(trusts: (IPAddress) -> Bool) -> IPAddress {
            asked = []
            address.read(head.fields, bytes.span, source: source, peer: peer) {
                asked.append($0)
                return trusts($0)
            }
            demand(address.hops == asked, "what is believed is what was asked about")
            return address.client
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
