import EventLoops
import Expectations
import Foundation
import Testing

@Suite struct ContextTests {
    private let certificates: TestCertificates

    init() throws {
        certificates = try TestCertificates.shared.get()
    }

    private func reason(chain: String, key: String) -> TLSContextError.Reason? {
        do {
            _ = try TLSContext(serverCertificateChain: chain, key: key)
            return nil
        } catch {
            return error.reason
        }
    }

    @Test func `a server's context knows when its certificate ends`() throws {
        let context = try SessionPair.serverContext()
        // 2049-01-01T00:00:00Z.
        expectEqual(context.certificates.map(\.expiry), [2_493_072_000])
        #expect(try TLSContext(clientTrusting: .system).certificates.isEmpty)
    }

    @Test func `files that can't be used are told apart`() {
        let server = certificates.chain("server")
        let key = certificates.key("server")
        expectEqual(reason(chain: server, key: key), nil)
        expectEqual(reason(chain: "/nowhere", key: key), .certificateUnreadable)
        expectEqual(reason(chain: key, key: key), .certificateUnreadable)
        expectEqual(reason(chain: server, key: "/nowhere"), .keyUnreadable)
        expectEqual(reason(chain: server, key: server), .keyUnreadable)
        expectEqual(reason(chain: server, key: certificates.key("other")), .keyMismatch)
    }

    @Test func `a key with a passphrase is an error, never a question on the terminal`() {
        let error = #expect(throws: TLSContextError.self) {
            try TLSContext(
                serverCertificateChain: certificates.chain("server"),
                key: certificates.key("locked")
            )
        }
        expectEqual(error?.reason, .keyEncrypted, "\(error.map(\.description) ?? "")")
        expectEqual(error?.path, certificates.key("locked"))
        expectEqual(error?.description.contains("openssl pkey"), true)
    }

    @Test func `a trust file that can't be used is an error`() {
        let error = #expect(throws: TLSContextError.self) {
            try TLSContext(clientTrusting: .file("/nowhere"))
        }
        expectEqual(error?.reason, .trustUnreadable)
    }

    @Test func `sessions keep the context they began with`() throws {
        var pair = try SessionPair()
        // The pair's contexts are referred to by nobody else any more.
        pair.exchange()
        #expect(pair.client.isEstablished)
    }

    @Test func `every failure has a name of its own`() {
        let names = Set(TLSFailure.Reason.allCases.map(\.rawValue))
        expectEqual(names.count, TLSFailure.Reason.allCases.count)
    }
}
