public import Foundation
import RequestBinding

/// Sends requests through a gateway, each with the proof that its route asks.
///
/// ```swift
/// guard let gateway = URL(string: "https://api.example.com") else { … }
/// let session = PortcullisSession(
///     PortcullisConfiguration(gateway: gateway),
///     service: AppAttestService(),
///     store: KeychainEnrolmentStore()
/// )
/// let (data, answer) = try await session.data(for: request)
/// ```
///
/// One session for each gateway and process is enough, and any number of tasks may use it at once.
/// It enrols the device's key when the first route asks for a proof, and never more than one key at
/// a time. It refuses nothing by itself: ``ProvenResponse/proof`` says what a request carried, and
/// why it carried nothing.
public final class PortcullisSession: Sendable {
    let configuration: PortcullisConfiguration
    let driver: RequestDriver

    private var hub: EventHub { driver.hub }
    private var prover: Prover { driver.prover }
    private var plans: PlanSource? { driver.plans }

    /// A session with a gateway.
    ///
    /// - Parameters:
    ///   - configuration: which gateway, and what its routes ask.
    ///   - service: who makes keys and signs.
    ///   - store: where the record about the key is kept. Processes that share a key share it. The
    ///     record of each gateway has a name of its own in it.
    ///   - transport: what carries requests.
    public init(
        _ configuration: PortcullisConfiguration,
        service: any AttestationService,
        store: any EnrolmentStore,
        transport: any HTTPTransport = URLSessionTransport()
    ) {
        self.configuration = configuration
        driver = RequestDriver(
            configuration,
            service: service,
            store: store.scoped(to: configuration.endpoints),
            transport: transport
        )
    }

    deinit { hub.end() }

    /// What happens, from now on. Each call makes a stream of its own, which keeps the newest 256
    /// events for one who does not read.
    public var events: AsyncStream<PortcullisEvent> { hub.stream() }

    /// Enrols the key, fetches challenges, and opens a session where a rule of the plan takes one,
    /// so that the first request need not wait for it.
    ///
    /// - Returns: `nil` when a request could be proven now, else why not.
    public func prewarm() async -> SentProof.Absence? {
        switch await prover.enroller.keyID(within: configuration.limits.enrolmentWait.seconds) {
        case .none(let absence): return absence
        case .key: break
        }
        await plans?.prepare(within: configuration.limits.planWait.seconds) { false }
        if driver.usesSessions, driver.routes.takesSessions { _ = await prover.openSession() }
        await prover.challenges.fill()
        return nil
    }

    /// Forgets what belongs to a user who signs out: the session, the challenges, and the context
    /// that the next key would have.
    ///
    /// An enrolled key stays, since it is the device's, with the context that it was enrolled with:
    /// an app that binds keys to accounts calls ``reset(context:)`` when the next user signs in. An
    /// enrolment with a context that is under way ends. To sign out costs nothing at Apple, however
    /// often it is done.
    public func signOut() async {
        await prover.sessions.reset()
        await prover.enroller.signOut()
        await prover.sessions.reset()
        await prover.challenges.clear()
    }

    /// Forgets key, session and challenges. An enrolment and a session that are under way end, and
    /// nothing of them is kept. The next proof enrols a new key, which Apple counts.
    ///
    /// Where a day allows no other key (``PortcullisLimits/keysPerDay``), the key stays: without it
    /// no request could be proven until the next day. One that is bound to a context does not stay.
    ///
    /// - Returns: whether the key was forgotten, or will be once the store can be written.
    @discardableResult
    public func reset() async -> Bool { await forget(context: nil) }

    /// The same, with what the gateway keeps with the next key. It never keeps the key.
    ///
    /// - Parameter context: 1 to 256 bytes.
    /// - Throws: ``PortcullisError/contextUnfit`` for another number of bytes, and
    ///   ``PortcullisError/keysExhausted`` where there is a key and a day allows no other. Nothing
    ///   is forgotten then.
    public func reset(context: Data) async throws(PortcullisError) {
        guard (1...EnrolmentLines.contextBytesMax).contains(context.count) else {
            throw .contextUnfit
        }
        guard await prover.enroller.mayReplaceKey() else { throw .keysExhausted }
        _ = await forget(context: context)
    }

    private func forget(context: Data?) async -> Bool {
        // The session first, so that none is opened with the old key meanwhile.
        await prover.sessions.reset()
        let isForgotten = await prover.enroller.reset(context: context)
        await prover.sessions.reset()
        await prover.challenges.clear()
        return isForgotten
    }

    /// Ends what waits, and all event streams. The session proves nothing any more: requests that
    /// it still sends carry no proof, for the reason ``SentProof/Absence/closed``.
    public func close() async {
        await prover.enroller.close()
        // After the enroller, so that none is opened again.
        await prover.sessions.reset()
        await plans?.close()
        hub.end()
    }
}
