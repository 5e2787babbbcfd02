import Cryptography
import Encodings
import TestSupport

@testable import AppAttest

/// An attestation with all that its verification needs, each part replaceable.
struct AttestationCase {
    var object: [UInt8]
    var clientDataHash: [UInt8]
    var keyID: KeyID
    var appID: String
    var environments: Set<AttestationEnvironment>
    var isMacOS = false
    var builds = BuildPolicy.any
    var roots = [AppleRoots.appAttestation]
    var time: UnixTime

    init(_ vector: AttestationVector) throws {
        guard let environment = AttestationEnvironment(rawValue: vector.environment) else {
            throw BrokenVector()
        }
        object = try bytes(vector.attestationB64)
        clientDataHash = try bytes(vector.clientDataHashB64)
        keyID = try TestSupport.keyID(vector.keyId)
        appID = vector.appId
        environments = [environment]
        time = try moment(vector.verifyAt)
        roots = [vector.attestationRoot]
    }

    init(_ sample: AppleSample) throws {
        object = try bytes(sample.attestation)
        clientDataHash = Array(sample.clientData.utf8)
        keyID = try TestSupport.keyID(sample.keyID)
        appID = sample.appID
        environments = [.production]
        time = try moment(sample.verifyAt)
    }

    var app: ExpectedApp {
        ExpectedApp(id: appID, environments: environments, isMacOS: isMacOS, builds: builds)
    }

    @discardableResult
    func verified() throws(AttestationRefusal) -> VerifiedAttestation {
        try UnverifiedAttestation(bytes: object).verified(
            clientDataHash: clientDataHash.span,
            keyID: keyID,
            apps: [app],
            roots: roots,
            at: time
        )
    }

    func refusal(_ change: (inout Self) throws -> Void) rethrows -> AttestationRefusal.Reason? {
        var other = self
        try change(&other)
        return AttestationRefusal.reason { try other.verified() }
    }
}

/// The parts of an attestation object, to be put together again in another way.
struct AttestationParts {
    var x5c: [[UInt8]]
    var receipt: [UInt8]
    var authData: [UInt8]

    init(_ object: [UInt8]) throws {
        let value = try CBORValue(
            decoding: object,
            budget: CBORBudget(bytesMax: 1 << 16, depthMax: 8, itemsMax: 64)
        )
        guard case .array(let x5c) = value["attStmt"]?["x5c"],
            case .bytes(let receipt) = value["attStmt"]?["receipt"],
            case .bytes(let authData) = value["authData"]
        else { throw BrokenVector() }
        self.x5c = x5c.compactMap { if case .bytes(let der) = $0 { der } else { nil } }
        self.receipt = receipt
        self.authData = authData
    }

    init(x5c: [[UInt8]], receipt: [UInt8], authData: [UInt8]) {
        self.x5c = x5c
        self.receipt = receipt
        self.authData = authData
    }

    var value: CBORValue {
        .map([
            .init(.text("fmt"), .text("apple-appattest")),
            .init(
                .text("attStmt"),
                .map([
                    .init(.text("x5c"), .array(x5c.map { .bytes($0) })),
                    .init(.text("receipt"), .bytes(receipt)),
                ])
            ),
            .init(.text("authData"), .bytes(authData)),
        ])
    }

    var encoded: [UInt8] { value.encoded }
}
