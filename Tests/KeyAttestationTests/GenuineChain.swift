import Encodings
import Foundation
import KeyAttestation
import TestSupport
import Testing

/// A genuine chain as it is verified, with what tests change.
struct GenuineChain {
    var certificates: [[UInt8]]
    var challenge: [UInt8]
    var package: String
    var signers: Set<[UInt8]>
    var policy = AndroidPolicy.standard
    var roots = GoogleRoots.all
    var statusList = StatusList.empty
    var time: UnixTime

    init(_ vector: AndroidVector) throws {
        certificates = try vector.chainB64.map { try #require(Base64.decode($0)) }
        challenge = try #require(Base64.decode(vector.challengeB64))
        package = vector.expected.packages?.first?.name ?? "com.example.shop"
        signers = Set(
            try (vector.expected.signersHex ?? []).map { try #require(Hex.decode($0)) }
        )
        time = try #require(UnixTime(iso8601: vector.verifyAt))
    }

    func verified() throws(KeyAttestationRefusal) -> VerifiedKeyAttestation {
        try UnverifiedKeyAttestation(chain: certificates).verified(
            challenge: challenge,
            app: ExpectedAndroidApp(package: package, signers: signers, policy: policy),
            roots: roots,
            statusList: statusList,
            at: time
        )
    }

    /// Why the chain is refused with a change; `nil` when it is accepted.
    func reason(
        _ change: (inout GenuineChain) -> Void = { _ in }
    ) -> KeyAttestationRefusal.Reason? {
        var other = self
        change(&other)
        do throws(KeyAttestationRefusal) {
            _ = try other.verified()
            return nil
        } catch {
            return error.reason
        }
    }
}

/// The status lists beside the chains, and what each does to which chain.
struct StatusCase: Decodable, Sendable, CustomStringConvertible {
    let file: String
    let chain: String
    let expect: String

    var description: String { "\(file), \(chain)" }

    static let all: [StatusCase] = {
        do {
            guard let json = try contents("expected.json") else { return [] }
            return try JSONDecoder().decode([StatusCase].self, from: json)
        } catch {
            fatalError("android/status: \(error)")
        }
    }()

    func json() throws -> [UInt8] { try Array(#require(try Self.contents(file))) }

    private static func contents(_ name: String) throws -> Data? {
        try SharedVectorFiles.folder.map {
            try Data(contentsOf: $0.appending(path: "android/status/\(name)"))
        }
    }
}
