import ClientKit
import Expectations
import Foundation
import RequestBinding
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls whose content must not leave without a proof.
@Suite struct RequiredProofTests {
    private static let content = Data("secret".utf8)

    /// How each call ends that sends content.
    private func outcomes(
        _ session: PortcullisSession,
        _ request: URLRequest
    ) async throws -> [String] {
        let file = try TemporaryFile()
        try file.append(Self.content)
        try file.end()
        var attached = request
        attached.httpBody = Self.content
        let withBody = attached
        let calls: [() async throws -> SentProof] = [
            { try await session.data(for: withBody, requiring: .proof).1.proof },
            {
                try await session.upload(for: request, from: Self.content, requiring: .proof).1
                    .proof
            },
            {
                try await session.upload(for: request, fromFile: file.url, requiring: .proof).1
                    .proof
            },
            {
                let (url, answer) = try await session.download(for: withBody, requiring: .proof)
                try FileManager.default.removeItem(at: url)
                return answer.proof
            },
            { try await session.bytes(for: withBody, requiring: .proof).1.proof },
        ]
        var outcomes: [String] = []
        for call in calls {
            do {
                outcomes.append(try await call().keyID == nil ? "bare" : "proven")
            } catch PortcullisError.proofUnavailable(let absence) {
                outcomes.append("\(absence)")
            }
        }
        return outcomes
    }

    private func outcome(_ bench: Bench, _ path: String = "/a") async throws -> Set<String> {
        Set(try await outcomes(bench.session, Bench.request(path, "POST")))
    }

    @Test func `with a proof each call is as usual`() async throws {
        let bench = try Bench()
        try await expectEqual(outcome(bench), ["proven"])
        await expectEqual(bench.verdicts, Array(repeating: "pass", count: 5))
    }

    @Test func `without a proof nothing is sent, whatever the reason`() async throws {
        let unsupported = try Bench(isSupported: false)
        try await expectEqual(outcome(unsupported), ["unsupported"])
        #expect(await unsupported.gateway.seen.isEmpty)
        let unknown = try Bench { $0.defaultRequirement = nil }
        try await expectEqual(outcome(unknown), ["routeUnknown"])
        #expect(await unknown.gateway.seen.isEmpty)
        let throttled = try Bench()
        let reply = FakeGateway.problem(
            429,
            "enrolment-throttled",
            next: "retry-later",
            retryAfter: 3600
        )
        await throttled.gateway.change { $0.troubles["challenges"] = [reply] }
        let held = try await outcome(throttled)
        #expect(held.count == 1 && held.first?.hasPrefix("enrolmentHeld") == true)
        #expect(await throttled.gateway.seen.isEmpty)
        let closed = try Bench()
        await closed.session.close()
        try await expectEqual(outcome(closed), ["closed"])
        #expect(await closed.gateway.seen.isEmpty)
    }

    @Test func `a redirect to another origin is not followed with the content`() async throws {
        let bench = try Bench()
        await bench.gateway.change {
            $0.origins["/a"] = .init(
                status: 307,
                fields: ["Location": "https://elsewhere.example/b"]
            )
        }
        try await expectEqual(outcome(bench), ["otherOrigin"])
        await expectEqual(bench.verdicts, Array(repeating: "pass", count: 5))
    }

    /// An outdated plan: without the condition, the client would ask with a request that is bare.
    @Test func `a route is not asked with the content what it signs`() async throws {
        let bench = try Bench { $0.defaultRequirement = SigningRequirement(counter: .window(64)) }
        await bench.gateway.change {
            $0.requirement.form = .lines([.method, .challenge], headers: [])
        }
        try await expectEqual(outcome(bench), ["proven"])
        await expectEqual(bench.verdicts, Array(repeating: "signature-mismatch", count: 5))
        let request = try Bench.request("/a", "POST")
        let (_, answer) = try await bench.session.data(for: request)
        expectEqual(answer.statusCode, 200)
    }

    @Test(.timeLimit(.minutes(1)), arguments: [SendingCondition.proof, .nothing])
    func `a call that is cancelled while it waits for its proof says that, and sends nothing`(
        condition: SendingCondition
    ) async throws {
        let (gateway, latch) = (FakeGateway(), Latch())
        let service = ScriptedAttestationService(FakeService())
        service.next(.attestKey, .wait(latch))
        let session = try Bench.session(service, MemoryEnrolmentStore(), ManualClock(), gateway) {
            $0.defaultRequirement = SigningRequirement()
        }
        let request = try Bench.request("/a", "POST")
        let call = Task { try await session.data(for: request, requiring: condition).1 }
        await latch.awaitArrivals(1)
        call.cancel()
        await #expect(throws: CancellationError.self) { _ = try await call.value }
        #expect(await gateway.seen.isEmpty)
        latch.open()
    }

    @Test func `a rule that only observes is no reason to send without a proof`() async throws {
        let bench = try Bench { $0.defaultRequirement = SigningRequirement() }
        await bench.gateway.change { $0.enforces = false }
        try await expectEqual(outcome(bench), ["proven"])
    }

    @Test func `the error says what is missing`() {
        let error = PortcullisError.proofUnavailable(.unsupported)
        expectEqual(
            error.localizedDescription,
            """
            The request was not sent, since it can't be proven now: \
            this device or process can't attest.
            """
        )
    }
}
