internal import CPostgreSQL
internal import Dispatch
internal import Encodings
internal import Foundation
internal import Synchronization

/// The servers of a connection string, each with the settings for a connection to it alone.
///
/// When libpq is polled, it waits for a silent first server without a limit, and it looks up names
/// without a deadline. So each server gets its own connection and an address.
struct DatabaseServers {
    /// A server, or the only target where the string names none.
    struct Server: Hashable {
        /// For messages: the name, and the address where that differs.
        var name: String
        /// Settings beside the string.
        var settings: [Setting]
    }

    struct Setting: Hashable {
        var name: String
        var value: String

        init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    /// The most servers that are tried: each gets its share of the time.
    private static let serversMax = 16

    /// In the order in which they are tried.
    let servers: [Server]

    /// - address: libpq's connection string.
    /// - lookUp: gives the addresses of a name. Its error becomes that server's fault.
    /// - Throws: that the string can't be read, or that no name of a server has an address.
    init(
        _ address: String,
        lookUp: (String) throws(DatabaseFault) -> [String]
    ) throws(DatabaseFault) {
        let said = try Self.settings(address)
        func list(_ name: String) -> [String] {
            guard let value = said[name], !value.isEmpty else { return [] }
            return value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(hosts.count, addresses.count)
        guard count > 0 else {
            // From a service file or the environment, or the socket that libpq knows.
            servers = [Server(name: "the database", settings: [])]
            return
        }
        // libpq reports what is wrong with other lists.
        guard hosts.isEmpty || addresses.isEmpty || hosts.count == addresses.count,
            ports.count <= 1 || ports.count == count
        else {
            servers = [Server(name: "the database", settings: [])]
            return
        }
        var servers: [Server] = []
        var fault: DatabaseFault?
        for index in 0..<count {
            let host = hosts.isEmpty ? "" : hosts[index]
            var common = [Setting("host", host)]
            if !ports.isEmpty {
                let port = ports.count == 1 ? ports[0] : ports[index]
                // libpq reads a list with gaps in this way.
                common.append(Setting("port", port.isEmpty ? "5432" : port))
            }
            let known = addresses.isEmpty ? "" : addresses[index]
            if !known.isEmpty || Self.isSocket(host) {
                let name = host.isEmpty ? known.isEmpty ? "the socket" : known : host
                servers.append(Server(name: name, settings: common + [Setting("hostaddr", known)]))
                continue
            }
            do throws(DatabaseFault) {
                for found in try lookUp(host) {
                    let name = found == host ? host : "\(host) (\(found))"
                    let setting = Setting("hostaddr", found)
                    servers.append(Server(name: name, settings: common + [setting]))
                }
            } catch {
                fault = error
            }
        }
        if servers.isEmpty, let fault { throw fault }
        // Several servers are named because one of them accepts writes.
        if count > 1, said["target_session_attrs"] == nil {
            let setting = Setting("target_session_attrs", "read-write")
            for index in servers.indices { servers[index].settings.append(setting) }
        }
        self.servers = Array(servers.prefix(Self.serversMax))
    }

    /// Whether a host is a Unix socket: a folder, a name without a file, or libpq's own.
    private static func isSocket(_ host: String) -> Bool {
        host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@")
    }

    static func settings(_ address: String) throws(DatabaseFault) -> [String: String] {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(address, &message) else {
            // The message may contain the string, and so a password.
            PQfreemem(message)
            throw .unreachable("libpq can't read the address", state: nil)
        }
        defer { PQconninfoFree(options) }
        var settings: [String: String] = [:]
        var next = options
        while let name = next.pointee.keyword {
            if let value = next.pointee.val {
                settings[String(cString: name)] = String(cString: value)
            }
            next += 1
        }
        return settings
    }
}

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
