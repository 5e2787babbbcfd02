import EventLoops
import Expectations
import Foundation
import Synchronization
import Testing

/// Lists of revoked certificates.
@Suite struct RevocationTests {
    private let certificates: TestCertificates

    init() throws {
        certificates = try TestCertificates.shared.get()
    }

    private func certificate(_ name: String) -> ServerCertificate {
        ServerCertificate(chain: certificates.chain(name), key: certificates.key(name))
    }

    /// A listener that asks for certificates, and checks them by these lists.
    private func context(
        _ lists: String,
        _ authorities: String? = nil,
        tickets: TicketKeys = TicketKeys(),
        wallSeconds: @escaping @Sendable () -> Int64 = TLSContext.systemSeconds
    ) throws -> TLSContext {
        let trust = ClientTrust(
            authorities: authorities ?? certificates.authority,
            revoked: lists,
            demand: .required
        )
        return try TLSContext(
            showing: [certificate("server")],
            tickets: tickets,
            clients: trust,
            wallSeconds: wallSeconds
        )
    }

    private func reason(
        _ lists: String,
        _ authorities: String? = nil
    ) -> (reason: TLSContextError.Reason, detail: String)? {
        do {
            _ = try context(lists, authorities)
            return nil
        } catch let error as TLSContextError {
            return (error.reason, error.detail)
        } catch {
            Issue.record(error)
            return nil
        }
    }

    /// A new folder with these files, from those of the tests.
    private func folder(_ files: [String]) throws -> String {
        let folder = "\(certificates.folder)/lists-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for file in files {
            let path = URL(filePath: file)
            try FileManager.default.copyItem(
                at: path,
                to: URL(filePath: "\(folder)/\(path.lastPathComponent)")
            )
        }
        return folder
    }

    private func outcome(_ context: TLSContext, _ shown: String) throws -> TLSFailure.Reason? {
        var pair = try SessionPair(accepting: context, showing: certificate(shown))
        pair.exchange()
        if pair.server.isEstablished { return nil }
        let reason = pair.serverOutcome.reason
        #expect(reason != nil)
        return reason
    }

    @Test func `a client whose certificate was revoked is refused, and no other`() throws {
        let der = certificates.folder + "/revoked.der"
        for path in [certificates.list("revoked"), der, try folder([der])] {
            let context = try context(path)
            expectEqual(try outcome(context, "server"), nil)
            expectEqual(try outcome(context, "other"), .certificateRevoked)
        }
        expectEqual(try outcome(context(certificates.list("none")), "other"), nil)
    }

    @Test func `the newest list of a folder counts`() throws {
        let both = try folder([certificates.list("ended"), certificates.list("revoked")])
        let context = try context(both)
        expectEqual(context.revocationLists.map(\.issuer), ["CN=ca"])
        expectEqual(context.revocationLists.map(\.end), [2_493_072_000])
        expectEqual(try outcome(context, "other"), .certificateRevoked)
    }

    @Test func `a list whose time is over refuses every client of its authority`() throws {
        let context = try context(certificates.list("ended"))
        for client in ["server", "other"] {
            expectEqual(try outcome(context, client), .revocationUnknown)
        }
    }

    @Test func `lists that can't be used as a whole are errors`() throws {
        let whole = try String(contentsOfFile: certificates.list("revoked"), encoding: .utf8)
        func written(_ text: String) throws -> String {
            let file = try folder([]) + "/\(text.utf8.count).pem"
            try text.write(toFile: file, atomically: true, encoding: .utf8)
            return file
        }
        let cut = try written(whole + whole.dropLast(40))
        let empty = try written("")
        let mixed = try folder([certificates.list("none"), certificates.authority])
        for path in [cut, empty, mixed, try folder([]), "/nowhere", certificates.authority] {
            expectEqual(reason(path)?.reason, .listUnreadable, "\(path)")
        }
        expectEqual(reason(try written(whole + whole))?.reason, nil)
        expectEqual(reason(try folder([cut, empty]))?.reason, .listUnreadable)
    }

    @Test(arguments: [
        ("changes.crl", "the list of CN=ca has changes alone (a delta CRL)"),
        ("endless.der", "the list of CN=ca does not say when it ends"),
    ])
    func `a list that would be passed over, or be good for ever, is an error`(
        file: String,
        detail: String
    ) throws {
        let path = "\(certificates.folder)/\(file)"
        let fault = try #require(reason(path))
        expectEqual(fault.reason, .listUnreadable)
        expectEqual(fault.detail, detail)
    }

    @Test func `an authority without a list of its own is an error, not a surprise for clients`()
        throws
    {
        let other = try #require(reason(certificates.list("stranger")))
        expectEqual(other.reason, .listMissing)
        #expect(other.detail.hasPrefix("no list of CN=ca,"), "\(other.detail)")
        let forged = try #require(reason(certificates.list("forged")))
        expectEqual(forged.reason, .listMissing)
        #expect(forged.detail.hasPrefix("a list of CN=ca that its key"), "\(forged.detail)")
        let leaf = try #require(reason(certificates.list("none"), certificates.chain("server")))
        expectEqual(leaf.reason, .listMissing)
    }

    @Test func `no session is resumed after another list came, or after the end of one`() throws {
        let tickets = TicketKeys()
        let seconds = Atomic<Int64>(1_800_000_000)
        let before = try context(certificates.list("none"), tickets: tickets) {
            seconds.load(ordering: .relaxed)
        }
        let after = try context(certificates.list("revoked"), tickets: tickets)
        let resumption = TLSResumption()
        func isResumed(_ context: TLSContext) throws -> Bool? {
            var pair = try SessionPair(
                accepting: context,
                resuming: resumption,
                showing: certificate("other")
            )
            pair.exchange()
            return pair.server.isEstablished ? pair.server.isResumed : nil
        }
        expectEqual(try isResumed(before), false)
        expectEqual(try isResumed(before), true)
        // The lists end with the year 2048, a moment before the certificates.
        seconds.store(2_493_072_000, ordering: .relaxed)
        expectEqual(try isResumed(before), false)
        expectEqual(try isResumed(after), nil)
    }
}
