import AppleStandIn
import Cryptography
import Expectations
import Foundation
import KeyStore
import LoopbackKit
import OutboundCalls
import Parties
import Synchronization
import Testing

@testable import Gateway

/// Calls to a server on this machine.
@Suite struct HTTPSCallsTests {
    private final class Stand {
        let folder: String
        let server: StandInServer
        let calls = HTTPSCalls()

        init() throws {
            folder = NSTemporaryDirectory() + "portcullis-https-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true
            )
            server = try StandInServer(folder: folder)
        }

        func end() {
            server.stop()
            try? FileManager.default.removeItem(atPath: folder)
        }

        func request(host: String = "localhost", milliseconds: Int = 30_000) throws -> HTTPSRequest
        {
            let port = server.ports[AppleHost(.receipts, .production)] ?? 0
            var request = HTTPSRequest(
                url: "https://\(host):\(port)/v1/attestationData",
                timeout: .milliseconds(milliseconds)
            )
            (request.contentType, request.content) = ("text/plain", Array("some".utf8))
            let roots = try #require(FileManager.default.contents(atPath: server.rootFile))
            request.roots = [UInt8](roots)
            return request
        }

        func outcome(_ request: HTTPSRequest) async -> Result<HTTPSAnswer, HTTPSFault> {
            await withCheckedContinuation { going in
                calls.send(request) { going.resume(returning: $0) }
            }
        }

        func reason(_ request: HTTPSRequest) async -> HTTPSFault.Reason? {
            if case .failure(let fault) = await outcome(request) { fault.reason } else { nil }
        }
    }

    @Test func `an answer has its status, its content and what Retry-After says`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.server.next(
            .receipts,
            .status(429, retryAfter: 17, body: "too many"),
            .status(200, body: "good")
        )
        let first = try await stand.outcome(stand.request()).get()
        expectEqual(
            first,
            HTTPSAnswer(status: 429, retryAfter: 17, content: Array("too many".utf8))
        )
        let second = try await stand.outcome(stand.request(host: "127.0.0.1")).get()
        expectEqual(second, HTTPSAnswer(status: 200, retryAfter: nil, content: Array("good".utf8)))
    }

    @Test func `a certificate of an authority that is not named is not believed`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        var request = try stand.request()
        request.roots = nil
        await expectEqual(stand.reason(request), .tls)
        let other = ECPrivateKey(generating: .p256)
        let root = CertificateBuilder(
            subject: .init(commonName: "other"),
            serial: 1,
            validity: UnixTime(seconds: 0)...UnixTime(seconds: 4_000_000_000),
            isAuthority: true
        ).selfSigned(by: other)
        request.roots = Array(root.pem.utf8)
        await expectEqual(stand.reason(request), .tls)
        expectEqual(stand.server.calls.count, 0)
    }

    @Test func `a certificate for another name is not believed`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        await expectEqual(stand.reason(try stand.request(host: "0.0.0.0")), .tls)
        expectEqual(stand.server.calls.count, 0)
    }

    @Test(arguments: [
        (StandInPlay.garbage, HTTPSFault.Reason.garbled), (.cut, .broken),
        (.long(bytes: 300_000), .answerTooLong), (.hang, .timeout),
    ])
    func `what is no answer is told apart`(
        _ play: StandInPlay,
        _ reason: HTTPSFault.Reason
    ) async throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.server.always(.receipts, play)
        let milliseconds = play == .hang ? 3_000 : 30_000
        await expectEqual(stand.reason(try stand.request(milliseconds: milliseconds)), reason)
        // The next call is not put on what is left of it.
        stand.server.always(.receipts, .status(200))
        try await expectEqual(stand.outcome(stand.request()).get().status, 200)
    }

    @Test func `a port at which nobody listens, and one that is deaf, are unreachable`()
        async throws
    {
        let stand = try Stand()
        defer { stand.end() }
        let refusing = try RefusingPort()
        var request = try stand.request()
        request.url = "https://\(refusing.address)/"
        await expectEqual(stand.reason(request), .unreachable)
        let origin = try TestOrigin { connection in
            _ = try connection.nextRequest()
        }
        defer { origin.stop() }
        // It accepts, and says nothing in TLS: nothing of the request has left.
        request.url = "https://127.0.0.1:\(origin.port)/"
        request.timeout = .milliseconds(300)
        #expect([.unreachable, .tls].contains(await stand.reason(request)))
    }

    @Test func `a call goes through a proxy, whatever the environment says`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.server.always(.receipts, .status(200, body: "good"))
        var request = try stand.request()
        let port = stand.server.ports[AppleHost(.receipts, .production)] ?? 0
        let proxy = try TestOrigin { connection in
            guard let head = try connection.nextHead(), head.method == "CONNECT" else { return }
            let server = try Wire(port: port)
            defer { server.close() }
            try connection.wire.send("HTTP/1.1 200 Connection established\r\n\r\n")
            while true {
                for (from, to) in [(connection.wire, server), (server, connection.wire)] {
                    guard from.isReadable(within: 2) else { continue }
                    try from.receive()
                    try to.send(from.inbox)
                    from.inbox = []
                }
            }
        }
        defer { proxy.stop() }
        request.proxy = "http://\(proxy.address)"
        try await expectEqual(stand.outcome(request).get().content, Array("good".utf8))
        expectEqual(proxy.connections.flatMap(\.heads).map(\.target), ["localhost:\(port)"])
        // One that refuses has let nothing of the request out.
        let refusing = try TestOrigin { connection in
            guard try connection.nextHead() != nil else { return }
            try connection.wire.send("HTTP/1.1 403 -\r\nContent-Length: 0\r\n\r\n")
        }
        defer { refusing.stop() }
        request.proxy = "http://\(refusing.address)"
        request.avoidsOldConnections = true
        await expectEqual(stand.reason(request), .unreachable)
        expectEqual(stand.server.calls.count, 1)
    }

    @Test func `only https is spoken, and no redirect is followed`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        var request = try stand.request()
        request.url = request.url.replacing("https:", with: "http:")
        await expectEqual(stand.reason(request), .garbled)
        stand.server.always(.receipts, .status(302))
        try await expectEqual(stand.outcome(stand.request()).get().status, 302)
    }

    @Test func `a stop ends the calls under way and those that come later`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.server.always(.receipts, .hang)
        let request = try stand.request()
        let results = Mutex<[HTTPSFault.Reason?]>([])
        for _ in 0..<5 {
            stand.calls.send(request) { result in
                let reason: HTTPSFault.Reason? =
                    if case .failure(let fault) = result { fault.reason } else { nil }
                results.withLock { $0.append(reason) }
            }
        }
        #expect(stand.server.wait { $0.count == 5 })
        await withCheckedContinuation { going in stand.calls.stop { going.resume() } }
        expectEqual(results.withLock { $0 }, Array(repeating: .stopped, count: 5))
        await expectEqual(stand.reason(request), .stopped)
    }

    @Test func `a hundred calls use few connections and all have their answers`() async throws {
        let stand = try Stand()
        defer { stand.end() }
        stand.server.always(.receipts, .status(200, body: "good"))
        let (request, calls) = (try stand.request(), stand.calls)
        let good = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    await withCheckedContinuation { going in
                        calls.send(request) { result in
                            going.resume(returning: (try? result.get().status) == 200)
                        }
                    }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        expectEqual(good, 100)
    }
}
