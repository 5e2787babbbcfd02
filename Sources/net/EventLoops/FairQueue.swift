/// Schedules members: deficit round robin that prefers sparse flows, as in FQ-CoDel (RFC 8290 §4.1
/// and §4.2). The quantum is nanoseconds of the event loop's time; FQ-CoDel counts bytes.
///
/// Members wait in flows; within a flow they are served in order. Flows take turns. A flow that has
/// used its quantum goes to the end of the line. A flow that begins to wait goes before those that
/// already wait, unless it was served in their current round. So a flow with little work waits for
/// at most one quantum, however much work others have.
///
/// Members and flows are numbers that the owner gives. A member waits once, with all its events.
///
/// The queue also decides how much a member should read at once, from the cost of the flow's last
/// turn. Expensive input, such as chunks of one byte, is read in small pieces, so that it delays no
/// other flow. A transfer is read in large pieces.
struct FairQueue {
    /// A member that is served next.
    struct Turn: Equatable {
        var member: Int
        /// Its events: one bit for each.
        var news: UInt32
        /// The most bytes that it should read.
        var inputMax: Int
        var flow: Int
    }

    /// Nanoseconds that a flow is served before it goes to the end of the line.
    static let quantum: Int64 = 100_000
    /// The most nanoseconds that a turn should take, as far as the size of its read decides.
    /// Hashing a whole read takes less.
    static let turnTarget = 200_000
    /// The least and the most bytes of a read. The size is computed only from turns that read at
    /// least the least.
    static let inputRange = 4 << 10...128 << 10
    /// The most debt of a flow: a turn that took longer, or that the system delayed, costs no more.
    private static let debtMax = quantum * 8
    /// No member, or no flow.
    private static let nobody = UInt32.max

    private enum Standing { case absent, sparse, busy }

    /// A linked list of numbers. Each number's successor is stored with its flow or member.
    private struct Line {
        private(set) var first = nobody
        private var last = nobody

        /// - Returns: the number that was last before.
        mutating func enter(_ number: Int) -> UInt32 {
            defer { last = UInt32(number) }
            if first == nobody { first = UInt32(number) }
            return last
        }

        /// Removes the first number; `next` is the new first one.
        mutating func leave(_ next: UInt32) {
            first = next
            if next == nobody { last = nobody }
        }
    }

    private struct Flow {
        var members = Line()
        /// The next flow in the line.
        var next = nobody
        var deficit: Int64 = 0
        var inputMax = Int32(inputRange.upperBound)
        var standing = Standing.absent
    }

    private struct Member {
        /// The next member of the flow.
        var next = nobody
        /// 0 while it does not wait.
        var news: UInt32 = 0
    }

    private var flows: [Flow]
    private var members: [Member] = []
    private var sparse = Line()
    private var busy = Line()
    /// The number of waiting members.
    private var count = 0
    /// The flow of the member that was taken last.
    private var current = 0

    /// A queue with `count` flows, 1…2³²-2.
    init(flows count: Int) { flows = [Flow](repeating: Flow(), count: count) }

    /// Whether no member waits.
    var isEmpty: Bool { count == 0 }

    /// Whether a flow has used its quantum and still waits: a new flow would go before it.
    var hasBusy: Bool { busy.first != Self.nobody }

    func holds(_ member: Int) -> Bool { member < members.count && members[member].news != 0 }

    /// Makes a member wait with the event bits `news`, which is not 0: at the end of its flow, or
    /// in its place if it already waits.
    mutating func append(_ member: Int, _ news: UInt32, to flow: Int) {
        while members.count <= member { members.append(Member()) }
        let isWaiting = members[member].news != 0
        members[member].news |= news
        guard !isWaiting else { return }
        members[member].next = Self.nobody
        count += 1
        let last = flows[flow].members.enter(member)
        if last != Self.nobody { members[Int(last)].next = UInt32(member) }
        guard flows[flow].standing == .absent else { return }
        flows[flow].deficit = Self.quantum
        enter(flow, as: .sparse)
    }

    /// Takes the next member; `nil` when none waits.
    mutating func next() -> Turn? {
        while true {
            let isSparse = sparse.first != Self.nobody
            let first = isSparse ? sparse.first : busy.first
            guard first != Self.nobody else { return nil }
            let flow = Int(first)
            let member = flows[flow].members.first
            if member == Self.nobody {
                leave(flow)
                // For one round of the busy flows; otherwise it could go before them again and
                // again.
                if isSparse, busy.first != Self.nobody { enter(flow, as: .busy) }
            } else if flows[flow].deficit <= 0 {
                flows[flow].deficit += Self.quantum
                leave(flow)
                enter(flow, as: .busy)
            } else {
                return take(Int(member), from: flow)
            }
        }
    }

    private mutating func take(_ member: Int, from flow: Int) -> Turn {
        let news = members[member].news
        members[member].news = 0
        flows[flow].members.leave(members[member].next)
        count -= 1
        current = flow
        return Turn(member: member, news: news, inputMax: Int(flows[flow].inputMax), flow: flow)
    }

    /// Charges the last turn for its duration, and adapts the size of the flow's reads.
    mutating func charge(nanoseconds: UInt64, bytes: Int) {
        let left = flows[current].deficit &- Int64(clamping: nanoseconds)
        flows[current].deficit = max(left, -Self.debtMax)
        guard bytes >= Self.inputRange.lowerBound else { return }
        let wanted = bytes * Self.turnTarget / Int(clamping: max(nanoseconds, 1))
        let range = Self.inputRange
        flows[current].inputMax = Int32(min(max(wanted, range.lowerBound), range.upperBound))
    }

    /// Puts the flow at the end of a line.
    private mutating func enter(_ flow: Int, as standing: Standing) {
        flows[flow].standing = standing
        flows[flow].next = Self.nobody
        let last = standing == .sparse ? sparse.enter(flow) : busy.enter(flow)
        if last != Self.nobody { flows[Int(last)].next = UInt32(flow) }
    }

    /// Removes the flow, the first of its line.
    private mutating func leave(_ flow: Int) {
        let next = flows[flow].next
        if flows[flow].standing == .sparse { sparse.leave(next) } else { busy.leave(next) }
        flows[flow].standing = .absent
    }
}
