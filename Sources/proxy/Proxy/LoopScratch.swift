import HTTPWire

extension HeadScratch {
    /// Reads the head of a client's request; why it is malformed, or `nil`.
    func fault(
        in bytes: Span<UInt8>,
        of peer: ClientPeer,
        _ limits: ProxyLimits
    ) -> Malformed.Reason? {
        do throws(Malformed) {
            try request.read(bytes, isSecure: peer.isSecure, limits: limits.requestHead)
            return nil
        } catch {
            return error.reason
        }
    }
}

/// Memory that only one event uses at a time, so that no request allocates it.
struct LoopScratch {
    let heads = HeadScratch()
    let headMemory = HeadMemory()
    /// The memory for heads that other proxies ask about.
    let askedHeads = HeadScratch()
    var address = ClientAddress()
    var view = TargetView()
    private var dateSecond: Int64 = -1
    private var dateBytes: [UInt8] = []
    /// Empty arrays for the heads that go to origins: their memory is reused.
    private var spareHeads: [[UInt8]] = []

    /// The most arrays that are kept, and the most memory of one.
    private static let spareHeadsMax = 256
    private static let spareHeadBytesMax = 32 << 10

    init() {}

    mutating func takeHead() -> [UInt8] { spareHeads.popLast() ?? [] }

    /// Takes the array out of the caller's variable, like ``EventLoop/giveBack(_:)``.
    mutating func giveBack(head: inout [UInt8]) {
        var taken: [UInt8] = []
        swap(&taken, &head)
        guard taken.capacity <= Self.spareHeadBytesMax, spareHeads.count < Self.spareHeadsMax
        else { return }
        taken.removeAll(keepingCapacity: true)
        spareHeads.append(taken)
    }

    /// A second of the wall clock as an IMF-fixdate.
    mutating func date(at second: Int64) -> [UInt8] {
        if second != dateSecond {
            dateSecond = second
            dateBytes = HTTPDate.bytes(unixSeconds: second)
        }
        return dateBytes
    }
}
