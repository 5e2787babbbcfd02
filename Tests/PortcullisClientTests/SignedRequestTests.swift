import ClientKit
import Expectations
import Foundation
import TestSupport
import Testing

@testable import PortcullisClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Signed requests that are answered after their process has ended.
@Suite struct SignedRequestTests {
    private static let content = Data("lamp".utf8)

    private func file() throws -> URL {
        let file = try TemporaryFile()
        try file.append(Self.content)
        return try file.handOver()
    }

    /// What another process reads.
    private func relaunched(_ signed: SignedRequest) throws -> SignedRequest {
        try JSONDecoder().decode(SignedRequest.self, from: JSONEncoder().encode(signed))
    }

    /// The session of that process.
    private func nextSession(_ bench: Bench) throws -> PortcullisSession {
        try Bench.session(bench.service, bench.store, bench.clock, bench.gateway)
    }

    @Test func `signing enrols the first key where the route is known, without an answer`()
        async throws
    {
        let bench = try Bench()
        let signed = try await bench.session.sign(Bench.request("/a"))
        #expect(signed.proof == .assertion(keyID: await bench.service.keysMade[0]))
        await expectEqual(bench.counts, [1, 1])
        #expect(await bench.gateway.seen.isEmpty)
    }

    @Test func `an enrolment that signing began goes on, and a later call has the key`()
        async throws
    {
        let (service, latch) = (ScriptedAttestationService(FakeService()), Latch())
        service.next(.attestKey, .wait(latch))
        let (store, clock) = (MemoryEnrolmentStore(), ManualClock())
        let session = try Bench.session(service, store, clock, FakeGateway()) {
            $0.limits.enrolmentWait = .zero
        }
        try await expectEqual(session.sign(Bench.request("/a")).proof, .none(.enrolling))
        await latch.awaitArrivals(1)
        latch.open()
        let isProven = try await eventually {
            try await session.sign(Bench.request("/a")).proof.keyID != nil
        }
        #expect(isProven)
        expectEqual(service.counts.attestationsRequested, 1)
    }

    @Test func `signing for an unknown route begins no enrolment, and says so`() async throws {
        let bench = try Bench { $0.defaultRequirement = nil }
        let first = try await bench.session.sign(Bench.request("/a"))
        expectEqual(first.proof, .none(.routeUnknown))
        await expectEqual(bench.counts, [0, 0])
        await expectEqual(bench.session.prewarm(), nil)
        await expectEqual(bench.counts, [1, 1])
        // Nothing is known of the route yet, key or no key.
        let second = try await bench.session.sign(Bench.request("/a"))
        expectEqual(second.proof, .none(.routeUnknown))
        let answer = try await bench.gateway.send(second.request, content: .none)
        await bench.session.learn(from: answer.response, to: second)
        let third = try await bench.session.sign(Bench.request("/a"))
        #expect(third.proof == .assertion(keyID: await bench.service.keysMade[0]))
    }

    @Test func `what was signed is the same in another process`() async throws {
        let bench = try Bench()
        var request = try Bench.request("/a?b=c", "POST")
        request.setValue("x", forHTTPHeaderField: "X-Own")
        request.timeoutInterval = 7
        request.httpShouldHandleCookies = false
        #if !canImport(FoundationNetworking)
            request.allowsExpensiveNetworkAccess = false
            request.allowsConstrainedNetworkAccess = false
        #endif
        request.httpBody = Self.content
        let signed = try await bench.session.sign(request)
        let read = try relaunched(signed)
        expectEqual(read.request.url, signed.request.url)
        expectEqual(read.request.httpMethod, "POST")
        expectEqual(read.request.allHTTPHeaderFields, signed.request.allHTTPHeaderFields)
        expectEqual(read.request.httpBody, Self.content)
        expectEqual(read.request.timeoutInterval, 7)
        #expect(!read.request.httpShouldHandleCookies)
        #if !canImport(FoundationNetworking)
            #expect(!read.request.allowsExpensiveNetworkAccess)
            #expect(!read.request.allowsConstrainedNetworkAccess)
        #endif
        expectEqual(read.request.cachePolicy, signed.request.cachePolicy)
        expectEqual(read.proof, signed.proof)
        #expect(read.proof.keyID != nil)
        expectEqual(read.deviceToken, signed.deviceToken)
        let answer = try await bench.gateway.send(read.request, content: .data(Self.content))
        expectEqual(answer.response.statusCode, 200)
    }

    @Test func `a background upload is signed again after a relaunch, until its tries are over`()
        async throws
    {
        let file = try file()
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try Bench()
        var signed = try await bench.session.sign(Bench.request("/a", "PUT"), fromFile: file)
        _ = try await bench.gateway.send(signed.request, content: .file(file))
        var tries = 1
        while tries < 10 {
            // The system sends it twice: the second time its proof is spent.
            _ = try await bench.gateway.send(signed.request, content: .file(file))
            let refused = try await bench.gateway.send(signed.request, content: .file(file))
            expectEqual(refused.response.statusCode, 401)
            let next = try await nextSession(bench)
                .signAgain(relaunched(signed), after: refused.response)
            guard let next else { break }
            expectEqual(next.proof.keyID, signed.proof.keyID)
            signed = next
            tries += 1
        }
        expectEqual(tries, PortcullisLimits().maximumAttempts)
        await expectEqual(bench.counts, [1, 1])
    }

    @Test func `a file that was changed before the relaunch is not signed again`() async throws {
        let file = try file()
        defer { try? FileManager.default.removeItem(at: file) }
        let bench = try Bench()
        let signed = try await bench.session.sign(Bench.request("/a", "PUT"), fromFile: file)
        _ = try await bench.gateway.send(signed.request, content: .file(file))
        let refused = try await bench.gateway.send(signed.request, content: .file(file))
        let read = try relaunched(signed)
        try Data("newer".utf8).write(to: file)
        let session = try nextSession(bench)
        await #expect(throws: PortcullisError.contentChanged) {
            _ = try await session.signAgain(read, after: refused.response)
        }
    }

    @Test func `the handshake of a WebSocket is one after a relaunch`() async throws {
        let bench = try Bench()
        var request = try Bench.request("/a")
        request.url = try Bench.url(FakeGateway.origin.replacing("http", with: "ws") + "/a")
        let read = try relaunched(try await bench.session.sign(request))
        expectEqual(read.request.url?.scheme, "wss")
    }

    @Test func `a stream ends with its process, and other versions are refused`() async throws {
        let bench = try Bench()
        var request = try Bench.request("/a", "POST")
        request.httpBodyStream = InputStream(data: Self.content)
        let streamed = try await bench.session.sign(request)
        #expect(throws: PortcullisError.contentUnreadable) { try JSONEncoder().encode(streamed) }
        let bytes = try JSONEncoder().encode(try await bench.session.sign(Bench.request("/a")))
        let text = String(decoding: bytes, as: UTF8.self)
        let newer = text.replacing("\"version\":1", with: "\"version\":2")
        #expect(newer != text)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(SignedRequest.self, from: Data(newer.utf8))
        }
    }
}
