import AppAttest
internal import Cryptography
import Encodings
import EventLoops
import Foundation
package import Parties
package import Signatures
package import SoftwareAuthenticator
import Synchronization

/// Apple's services on this machine.
package final class StandInServer: Sendable {
    /// Why the server could not start.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    struct State {
        var plays: [AppleService: StandInPlays] = [:]
        var tokens = TokenCheck()
        var receipts = ReceiptService()
        var bits = BitService()
        var calls = StandInCalls()
        var statusList = StatusListService()
        var tests = TestService()
        var integrity = PlayIntegrityService()
    }

    /// The authority of the certificates, in PEM; `apple.roots` names this file.
    package let rootFile: String
    package let ports: [AppleHost: UInt16]
    /// The port of Google's list of revoked certificates.
    package let statusListPort: UInt16
    /// The port of the tests for people.
    let testPort: UInt16
    /// The port of Play Integrity, and of the access tokens for it.
    let integrityPort: UInt16
    let now: @Sendable () -> UnixTime
    private let state = Mutex(State())
    private let changed = NSCondition()
    private let loop: EventLoop
    private let bound: LoopBound<Listeners>

    private final class Listeners {
        var all: [Listener] = []
        var connections: [ObjectIdentifier: StandInConnection] = [:]
    }

    /// Begins to serve on ports that the system chooses.
    ///
    /// - folder: where the certificates are written; it exists.
    /// - now: its clock, which dates receipts and judges tokens.
    package init(
        folder: String,
        now: @escaping @Sendable () -> UnixTime = {
            UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        }
    ) throws {
        self.now = now
        let files = try StandInCertificates(folder: folder)
        rootFile = files.root
        let tls = try TLSContext(serverCertificateChain: files.chain, key: files.key)
        loop = try EventLoop(number: 0)
        let listeners = Listeners()
        bound = LoopBound(listeners, on: loop)
        var ports: [AppleHost: UInt16] = [:]
        var sockets: [(host: AppleHost, descriptor: Int32)] = []
        for host in AppleHost.all {
            let descriptor = try Self.socket()
            ports[host] = Listener.boundAddress(descriptor).port
            sockets.append((host, descriptor))
        }
        self.ports = ports
        let statusList = try Self.socket()
        statusListPort = Listener.boundAddress(statusList).port ?? 0
        let tests = try Self.socket()
        testPort = Listener.boundAddress(tests).port ?? 0
        let integrity = try Self.socket()
        integrityPort = Listener.boundAddress(integrity).port ?? 0
        loop.start()
        loop.perform { [self, sockets] in
            for socket in sockets {
                listen(socket.descriptor, tls) { [unowned self] request, tick in
                    answer(request, at: socket.host, tick: tick)
                }
            }
            listen(statusList, tls) { [unowned self] request, _ in
                change { $0.statusList.answer(request) }
            }
            listen(tests, tls) { [unowned self] request, _ in
                change { $0.tests.answer(request) }
            }
            listen(integrity, tls) { [unowned self] request, _ in
                let time = self.now()
                return change { $0.integrity.answer(request, now: time) }
            }
        }
    }

    private static func socket() throws -> Int32 {
        guard let address = SocketAddress(ip: "127.0.0.1", port: 0) else {
            throw Failure(description: "no loopback address")
        }
        return try Listener.open(address)
    }

    private func listen(
        _ descriptor: Int32,
        _ tls: TLSContext,
        _ answering: @escaping StandInConnection.Answering
    ) {
        let listeners = bound.value
        let listener = Listener(descriptor: descriptor, on: loop)
        listener.accepted = { [loop, unowned listeners] descriptor, peer in
            guard let session = try? TLSSession(accepting: tls) else {
                return Connection.discard(descriptor)
            }
            let connection = StandInConnection(descriptor, peer, session, on: loop, answering)
            guard (try? loop.register(connection)) != nil else { return connection.close() }
            let name = ObjectIdentifier(connection)
            listeners.connections[name] = connection
            connection.ended = { [unowned listeners] in
                listeners.connections.removeValue(forKey: name)
            }
        }
        guard (try? listener.start()) != nil else { return }
        listeners.all.append(listener)
    }

    /// Stops the server: it cuts its connections and takes no more.
    package func stop() {
        loop.perform { [self] in
            let listeners = bound.value
            for listener in listeners.all { listener.close() }
            for connection in listeners.connections.values { connection.reset() }
            listeners.all = []
            listeners.connections = [:]
            loop.stop()
        }
    }

    // MARK: Teams, keys and devices

    /// The section `apple.hosts` of a configuration that uses this server.
    package var hostSettings: String {
        AppleHost.all.map { "\($0.key): \"https://localhost:\(ports[$0] ?? 0)\"" }
            .joined(separator: ", ")
    }

    /// Adds a team, whose tokens are accepted from now on.
    package func add(_ team: StandInTeam) { change { $0.tokens.add(team) } }

    /// Refuses every token that it has seen so far, as Apple does after an hour.
    package func refuseTokensSoFar() { change { $0.tokens.refuseAllSeen() } }

    /// Sets how `Authorization` holds the tokens of calls about receipts. Default: the token alone.
    package func wantBearerOfReceipts(_ isWanted: Bool) {
        change { $0.tokens.receiptsHaveBearer = isWanted }
    }

    /// Adds a key, whose receipts are exchanged for newer ones with this metric.
    package func add(_ key: SoftwareKey, riskMetric: UInt32) {
        change { $0.receipts.add(key, riskMetric) }
    }

    /// Removes a key: calls about it are answered 404.
    package func forget(_ key: SoftwareKey) { change { $0.receipts.forget(key) } }

    /// The bits of a device; `nil` when they were never set.
    package func bits(of device: String) -> (bit0: Bool, bit1: Bool)? {
        state.withLock { $0.bits[device] }
    }

    package func setBits(of device: String, _ bit0: Bool, _ bit1: Bool) {
        change { $0.bits.set(device, bit0, bit1, at: now()) }
    }

    // MARK: Google's list

    /// The section `google` of a configuration that uses this server.
    ///
    /// - more: further settings of `status_list`.
    package func googleSettings(_ more: String = "") -> String {
        let url = "https://localhost:\(statusListPort)\(StatusListService.path)"
        return "{ roots: \(rootFile), status_list: { url: \"\(url)\"\(more) } }"
    }

    /// Sets the list that is served from now on.
    ///
    /// - fields: of the answer, such as `Cache-Control`; `nil` for those of the list before.
    package func serveStatusList(_ text: String, fields: [(String, String)]? = nil) {
        change { $0.statusList.serve(text, fields) }
    }

    /// Sets the play of all requests for the list.
    package func playStatusList(_ play: StandInPlay) { change { $0.statusList.play = play } }

    /// The requests for the list so far.
    package var statusListCalls: [StandInListCall] { state.withLock { $0.statusList.calls } }

    /// The questions to tests for people so far.
    package var testCalls: [StandInTestCall] { state.withLock { $0.tests.calls } }

    /// The calls to Play Integrity so far.
    package var integrityCalls: [StandInIntegrityCall] { state.withLock { $0.integrity.calls } }

    /// Waits until this holds of the requests for the list; `false` when it does not within two
    /// minutes.
    package func waitForList(until isTrue: ([StandInListCall]) -> Bool) -> Bool {
        wait { _ in isTrue(statusListCalls) }
    }

    // MARK: The script

    /// Sets the plays for the next calls of a service; later calls get that of ``always(_:_:)``.
    package func next(_ service: AppleService, _ plays: StandInPlay...) {
        change { $0.plays[service, default: StandInPlays()].next += plays }
    }

    /// Sets the play for all calls of a service that have no script.
    package func always(_ service: AppleService, _ play: StandInPlay) {
        change { $0.plays[service, default: StandInPlays()].always = play }
    }

    // MARK: Calls so far

    /// The calls so far.
    package var calls: StandInCalls { state.withLock { $0.calls } }

    /// Waits until this holds of the calls so far; `false` when it does not within two minutes.
    package func wait(until isTrue: (StandInCalls) -> Bool) -> Bool {
        // Ample: a change that Apple refuses is tried again after pauses that grow, and each try
        // may open a connection on a busy machine.
        let deadline = Date(timeIntervalSinceNow: 120)
        return changed.withLock {
            while !isTrue(calls) {
                guard changed.wait(until: deadline) else { return isTrue(calls) }
            }
            return true
        }
    }

    func change<Value>(_ body: (inout sending State) -> sending Value) -> sending Value {
        let value = state.withLock(body)
        changed.withLock { changed.broadcast() }
        return value
    }
}

/// The calls to the stand-in.
package struct StandInCalls: Sendable {
    package struct Sighting: Sendable {
        package let host: AppleHost
        package let path: String
        /// The service that the path names; `nil` when it is none of the host's.
        package let service: AppleService?
        /// The value of `Authorization`.
        package let authorization: String?
        package let contentType: String?
        /// By the stand-in's clock.
        package let time: UnixTime
        /// Monotonic milliseconds.
        package let tick: UInt64
        /// The status of the answer; `nil` for no HTTP.
        package var status: Int?
    }

    package private(set) var all: [Sighting] = []
    /// The tokens of all calls, each once, in the order of their first calls.
    package private(set) var tokens: [String] = []

    package var count: Int { all.count }

    package func of(_ service: AppleService) -> [Sighting] { all.filter { $0.service == service } }

    /// The statuses of the answers.
    package var statuses: [Int?] { all.map(\.status) }

    mutating func add(_ sighting: Sighting, token: String?) {
        all.append(sighting)
        if let token, !tokens.contains(token) { tokens.append(token) }
    }
}

/// The stand-in's authority and its server's certificate, as files.
private struct StandInCertificates {
    let root: String
    let chain: String
    let key: String

    init(folder: String) throws {
        let now = UnixTime(seconds: Int64(Date().timeIntervalSince1970))
        func template(_ name: String, _ serial: UInt64, isAuthority: Bool) -> CertificateBuilder {
            CertificateBuilder(
                subject: .init(commonName: name, organization: "Portcullis, for tests alone"),
                serial: serial,
                validity: now.advanced(bySeconds: -86_400)...now.advanced(bySeconds: 365 * 86_400),
                isAuthority: isAuthority
            )
        }
        let rootKey = ECPrivateKey(generating: .p256)
        let root = template("Stand-in for Apple's authorities", 1, isAuthority: true)
            .selfSigned(by: rootKey)
        let serverKey = ECPrivateKey(generating: .p256)
        var server = template("localhost", 2, isAuthority: false)
        // RFC 5280 §4.2.1.6: dNSName is [2], iPAddress [7].
        let name = Array("localhost".utf8)
        let names = [0x82, UInt8(name.count)] + name + [0x87, 4, 127, 0, 0, 1]
        server.extensions = [
            CertificateBuilder.Extension(
                oid: OID("2.5.29.17"),
                value: DEREncoder.sequence([names])
            )
        ]
        let certificate = server.signed(for: serverKey, by: rootKey, issuer: root)
        self.root = folder + "/apple-root.pem"
        chain = folder + "/apple-server.pem"
        key = folder + "/apple-server-key.pem"
        for (path, text) in [
            (self.root, root.pem), (chain, certificate.pem), (key, serverKey.pem),
        ] {
            let made = FileManager.default.createFile(
                atPath: path,
                contents: Data(text.utf8),
                attributes: [.posixPermissions: 0o600]
            )
            guard made else { throw StandInServer.Failure(description: "can't write \(path)") }
        }
    }
}
