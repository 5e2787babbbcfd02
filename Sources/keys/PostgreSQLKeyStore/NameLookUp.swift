internal import Dispatch
internal import Encodings
internal import Foundation
internal import Synchronization

/// Looks up names with a deadline, which the system's function does not have.
///
/// A look-up that was given up continues in its own thread until the resolver ends it. A caller
/// with the same name meanwhile waits for the same look-up, so that there is one for each name.
final class NameLookUp: Sendable {
    typealias Resolve = @Sendable (String) -> [String]

    /// The most names that are looked up at the same time: each may keep a thread.
    private static let runningMax = 16

    static let shared = NameLookUp()

    /// A running look-up.
    private final class Run: Sendable {
        let ended = DispatchGroup()
        let addresses = Mutex<[String]>([])
    }

    private let resolve: Resolve
    private let queue = DispatchQueue(label: "portcullis.store.names", attributes: .concurrent)
    private let running = Mutex<[String: Run]>([:])

    init(resolve: @escaping Resolve = NameLookUp.system) { self.resolve = resolve }

    func addresses(
        of name: String,
        until deadline: ContinuousClock.Instant
    ) throws(DatabaseFault) -> [String] {
        guard let run = run(of: name) else {
            throw .unreachable("too many names are looked up", state: nil)
        }
        let nanoseconds = ContinuousClock.now.duration(to: deadline).nanosecondCount
        guard run.ended.wait(timeout: .now() + .nanoseconds(Int(nanoseconds))) == .success else {
            throw .unreachable("the resolver did not answer for \(name) in time", state: nil)
        }
        let found = run.addresses.withLock { $0 }
        guard !found.isEmpty else {
            throw .unreachable("the name \(name) has no address", state: nil)
        }
        return found
    }

    private func run(of name: String) -> Run? {
        running.withLock { running in
            if let run = running[name] { return run }
            guard running.count < Self.runningMax else { return nil }
            let run = Run()
            running[name] = run
            run.ended.enter()
            queue.async { [self] in
                let found = resolve(name)
                run.addresses.withLock { $0 = found }
                self.running.withLock { $0[name] = nil }
                run.ended.leave()
            }
            return run
        }
    }

    /// The system's resolver: /etc/hosts, DNS and the other sources of nsswitch.conf(5).
    static let system: Resolve = { name in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [String] = []
        var next = list
        while let entry = next {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let code = getnameinfo(
                entry.pointee.ai_addr,
                entry.pointee.ai_addrlen,
                &text,
                socklen_t(text.count),
                nil,
                0,
                NI_NUMERICHOST
            )
            let address = String(
                decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
                as: UTF8.self
            )
            if code == 0, !found.contains(address) { found.append(address) }
            next = entry.pointee.ai_next
        }
        return found
    }
}
