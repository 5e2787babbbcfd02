import AppAttest
import ConfigurationReading
import EventLoops
import Parties
import Rules
import Signatures
import SoftwareAuthenticator
import Tokens

/// Makes the tokens of Play Integrity that a fleet's phones show: those of classic requests, which
/// a gateway reads itself, with the two keys that `prepare` has written.
struct TokenMint: Sendable {
    let field: [UInt8]
    private let console: SoftwarePlayConsole
    private let package: String
    /// Milliseconds from the monotonic clock to Unix time.
    private let offset: Int64
    /// When each key got its last token. Google makes no two at once for one phone, so a gateway
    /// takes a second one of the same millisecond for the first.
    private var last: [KeyID: Int64] = [:]

    /// `nil` where phones are to show no tokens.
    ///
    /// - rule: what asks for the tokens; `nil` for nothing.
    /// - asker: its name, for people.
    /// - Throws: when no tokens are asked for, and when the gateway can't read those of the fleet.
    init?(
        _ pairing: FleetPairing,
        for rule: IntegrityRule?,
        of asker: String
    ) throws(LoadError) {
        guard pairing.showsTokens else { return nil }
        let fleet = pairing.fleet
        guard fleet.platforms.android > 0 else {
            throw LoadError("--tokens: the fleet has no Android phones")
        }
        guard let proof = rule?.proof else {
            throw LoadError("--tokens: \(asker) asks phones for no token of Play Integrity")
        }
        guard case .field(let field) = proof.place, field != Array("authorization".utf8) else {
            throw LoadError("--tokens: proof \(proof.name) has no field of its own")
        }
        self.field = field
        console = fleet.playConsole
        package = fleet.package ?? fleet.appID
        offset = pairing.now.seconds * 1_000 - Self.milliseconds
        guard let keys = pairing.configuration.classicKeys(of: proof) else {
            throw LoadError(
                "--tokens: proof \(proof.name) asks Google's service, which reads no tokens of "
                    + "this fleet; give it decryption_key and verification_key"
            )
        }
        let trial = token(bound: [UInt8](repeating: 0, count: 32), at: 0)
        guard (try? keys.payload(of: trial.span)) != nil else {
            throw LoadError(
                "--tokens: proof \(proof.name) has other keys than this fleet; "
                    + "`portcullis-load prepare` writes them"
            )
        }
    }

    private static var milliseconds: Int64 { Int64(MonotonicClock.nanoseconds / 1_000_000) }

    /// A new token for what a key signs, or was attested over; `nil` for a key that is no phone's.
    ///
    /// - clientDataHash: 32 bytes.
    mutating func token(of key: SoftwareKey, over clientDataHash: [UInt8]) -> [UInt8]? {
        guard key.device.phone != nil else { return nil }
        let now = max(Self.milliseconds + offset, (last[key.keyID] ?? 0) + 1)
        last[key.keyID] = now
        return token(bound: clientDataHash, at: now)
    }

    private func token(bound clientDataHash: [UInt8], at milliseconds: Int64) -> [UInt8] {
        var verdict = SoftwarePlayVerdict(
            clientDataHash: clientDataHash,
            at: milliseconds,
            signer: SoftwarePhone.signer
        )
        (verdict.package, verdict.appPackage) = (package, package)
        verdict.device.append("MEETS_STRONG_INTEGRITY")
        guard let token = try? console.token(verdict.json) else {
            preconditionFailure("TokenMint: a payload that can't be encrypted")
        }
        return Array(token.utf8)
    }
}

extension DeviceFleet {
    fileprivate var playConsole: SoftwarePlayConsole {
        SoftwarePlayConsole(seed: Array("load play console \(seed)".utf8))
    }

    /// The files by which a gateway reads the phones' tokens, as the Play Console shows them.
    package var tokenKeys: (decryption: String, verification: String) {
        (playConsole.decryptionKey, playConsole.verificationKey)
    }
}

extension GatewayConfiguration {
    /// The keys by which the gateway itself reads a proof's tokens; `nil` where Google does.
    fileprivate func classicKeys(of proof: TokenProof) -> ClassicTokenKeys? {
        for settings in self.settings.proofs where settings.proof == proof {
            if let integrity = settings.settings as? IntegritySettings,
                case .local(let keys) = integrity.decoder
            {
                return keys
            }
        }
        return nil
    }
}
