import EventLoops
import Glibc
import HTTPWire
import LoopbackKit

@testable import Gateway
@testable import Proxy

/// Makes a gateway's event loop stand still, so that a test decides what has come when it goes on.
///
/// An event loop serves what is ready for the clients of one address in the order in which it
/// became so. The door is a connection of theirs: a byte makes it ready, and when its turn comes
/// the event loop waits until the test opens it.
final class LoopDoor: Sendable {
    private let loop: EventLoop
    /// The test's end of the connection.
    private let knocker: Int32
    private let hinge: Hinge
    private let reached = Gate()
    private let opened = Gate()

    /// A door among the clients at 127.0.0.`host`.
    init(_ gateway: TestGateway, host: UInt8 = 1) throws {
        guard let unit = gateway.server.plane.loops.first else {
            throw WireFault.failed("no event loop", 0)
        }
        loop = unit.loop
        var pair: [Int32] = [-1, -1]
        let type = LoopbackKit.stream | Int32(SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else {
            throw WireFault.failed("socketpair", errno)
        }
        knocker = pair[0]
        let hinge = Hinge(pair[1], on: loop, reached, opened)
        self.hinge = hinge
        loop.perform { [loop] in
            hinge.flow = unit.bound.value.proxy.flow(of: .v4(0x7F00_0000 | UInt32(host)))
            try? loop.register(hinge)
        }
    }

    deinit { close(knocker) }

    private func knock() throws {
        guard send(knocker, "k", 1, Int32(MSG_NOSIGNAL)) == 1 else {
            throw WireFault.failed("send", errno)
        }
    }

    /// Returns when the event loop stands still.
    func shut() throws {
        try knock()
        try reached.pass()
    }

    /// Lets the event loop serve what came since ``shut()``, and returns when it stands still
    /// again.
    ///
    /// - Returns: how often it has polled meanwhile. It polls once, or again when it has got no
    ///   processor for so long that its round ended early.
    @discardableResult
    func shutAgain() throws -> UInt64 {
        let before = hinge.round
        try knock()
        opened.open()
        try reached.pass()
        return hinge.round &- before
    }

    /// Lets the event loop go on.
    func open() { opened.open() }

    /// Takes the door off the event loop.
    func remove() {
        let hinge = hinge
        loop.perform { hinge.close() }
    }
}

/// The event loop's end.
///
/// `@unchecked Sendable`: the event loop alone uses it, from its registration to its end; the test
/// reads ``round`` while the event loop stands still.
private final class Hinge: Connection, @unchecked Sendable {
    private let reached: Gate
    private let opened: Gate
    /// The event loop's round when it came to stand still.
    private(set) var round: UInt64 = 0

    init(_ descriptor: Int32, on loop: EventLoop, _ reached: Gate, _ opened: Gate) {
        (self.reached, self.opened) = (reached, opened)
        super.init(
            descriptor: descriptor,
            peer: Listener.boundAddress(descriptor),
            isConnecting: false,
            on: loop
        )
    }

    override func inputReady() {
        guard case .bytes = read() else { return }
        round = loop.round
        reached.open()
        // The test that does not open in time fails by itself.
        try? opened.pass()
    }
}
