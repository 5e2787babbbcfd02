import Foundation
import Glibc
import LoopbackKit

/// A network of its own for programs of a test (network_namespaces(7)), with a loopback interface.
/// It has no name, so it goes with what is in it.
final class NetworkNamespace: Sendable {
    /// Whether this machine and this user may make one; says so when not.
    static let isPossible: Bool = {
        guard Scenario.tool("ip") != nil, Scenario.tool("nsenter") != nil else { return false }
        do {
            _ = try NetworkNamespace()
            return true
        } catch {
            print("no network namespaces, which take root: \(error); a scenario is skipped")
            return false
        }
    }()

    private let descriptor: Int32

    // What Swift's Glibc does not name: CLONE_NEWNET, unshare(2) and setns(2).
    private static let kind: Int32 = 0x4000_0000

    /// Takes the calling thread to a network: to this one, or to a new one.
    private static func enter(_ descriptor: Int32?) throws {
        typealias Unshare = @convention(c) (Int32) -> Int32
        typealias Enter = @convention(c) (Int32, Int32) -> Int32
        let name = descriptor == nil ? "unshare" : "setns"
        guard let call = dlsym(nil, name) else { throw LoopbackKit.Failure(name) }
        let status =
            if let descriptor {
                unsafeBitCast(call, to: Enter.self)(descriptor, kind)
            } else {
                unsafeBitCast(call, to: Unshare.self)(kind)
            }
        guard status == 0 else { throw LoopbackKit.Failure(name) }
    }

    init() throws {
        // A thread is on one network. One that has gone to another is of no use for anything else.
        descriptor = try Thread.Answer {
            try Self.enter(nil)
            let descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw LoopbackKit.Failure("open") }
            return descriptor
        }.value()
        try ip("link set lo up")
    }

    deinit { close(descriptor) }

    /// Where programs find it.
    private var path: String { "/proc/\(getpid())/fd/\(descriptor)" }

    /// A program and its arguments that start another one in here, as the same process.
    var entrance: [String] { [Scenario.tool("nsenter") ?? "nsenter", "--net=\(path)"] }

    /// Does something in here. What it opens stays in here.
    func within<Value>(_ body: @escaping () throws -> Value) throws -> Value {
        try Thread.Answer { [descriptor] in
            try Self.enter(descriptor)
            return try body()
        }.value()
    }

    /// Runs ip(8) in here.
    ///
    /// - command: its words, divided by spaces.
    func ip(_ command: String) throws {
        let words = entrance + ["ip"] + command.split(separator: " ").map(String.init)
        let answer = try ChildProcess.run(words[0], Array(words.dropFirst()))
        guard answer.status == 0 else {
            throw ChildProcess.Failure(description: "ip \(command): \(answer.complained)")
        }
    }

    /// Connects an interface of this network with one of another: the ends of a cable (veth(4)).
    func connect(_ interface: String, to other: NetworkNamespace, as peer: String) throws {
        try ip("link add \(interface) type veth peer name \(peer) netns \(other.path)")
    }
}
