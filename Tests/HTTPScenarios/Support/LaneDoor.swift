import Glibc
import HTTPWire
import Lanes
import LoopbackKit

@testable import Gateway
@testable import Proxy

/// Makes a gateway's lane stand still, so that a test decides what has come when it goes on.
///
/// A lane serves what is ready for the clients of one address in the order in which it became so.
/// The door is a connection of theirs: a byte makes it ready, and when its turn comes the lane
/// waits until the test opens it.
final class LaneDoor: Sendable {
    private let lane: Lane
    /// The test's end of the connection.
    private let knocker: Int32
    private let hinge: Hinge
    private let reached = Gate()
    private let opened = Gate()

    /// A door among the clients at 127.0.0.`host`.
    init(_ gateway: TestGateway, host: UInt8 = 1) throws {
        guard let unit = gateway.server.plane.lanes.first else {
            throw WireFault.failed("no lane", 0)
        }
        lane = unit.lane
        var pair: [Int32] = [-1, -1]
        let type = LoopbackKit.stream | Int32(SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else {
            throw WireFault.failed("socketpair", errno)
        }
        knocker = pair[0]
        let hinge = Hinge(pair[1], on: lane, reached, opened)
        self.hinge = hinge
        lane.perform { [lane] in
            hinge.flow = unit.bound.value.proxy.flow(of: .v4(0x7F00_0000 | UInt32(host)))
            try? lane.register(hinge)
        }
    }

    deinit { close(knocker) }

    private func knock() throws {
        guard send(knocker, "k", 1, Int32(MSG_NOSIGNAL)) == 1 else {
            throw WireFault.failed("send", errno)
        }
    }

    /// Returns when the lane stands still.
    func shut() throws {
        try knock()
        try reached.pass()
    }

    /// Lets the lane serve what came since ``shut()``, and returns when it stands still again.
    func shutAgain() throws {
        try knock()
        opened.open()
        try reached.pass()
    }

    /// Lets the lane go on.
    func open() { opened.open() }

    /// Takes the door off the lane.
    func remove() {
        let hinge = hinge
        lane.perform { hinge.close() }
    }
}

/// The lane's end.
///
/// `@unchecked Sendable`: the lane alone uses it, from its registration to its end.
private final class Hinge: Connection, @unchecked Sendable {
    private let reached: Gate
    private let opened: Gate

    init(_ descriptor: Int32, on lane: Lane, _ reached: Gate, _ opened: Gate) {
        (self.reached, self.opened) = (reached, opened)
        super.init(
            descriptor: descriptor,
            peer: Listener.boundAddress(descriptor),
            isConnecting: false,
            on: lane
        )
    }

    override func inputReady() {
        guard case .octets = read() else { return }
        reached.open()
        // The test that does not open in time fails by itself.
        try? opened.pass()
    }
}
