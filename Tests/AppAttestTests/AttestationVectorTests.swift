import Cryptography
import Encodings
import Expectations
import TestSupport
import Testing

@testable import AppAttest

@Suite
struct AttestationVectorTests {
    @Test(arguments: SharedVectors.attestations)
    func `a genuine attestation is accepted when Apple issued it`(
        vector: AttestationVector
    ) throws {
        let verified = try AttestationCase(vector).verified()
        #expect(verified.publicKey.x963 == (try bytes(vector.publicKeyX963B64)))
        expectEqual(verified.keyID.base64, vector.keyId)
        expectEqual(verified.environment.rawValue, vector.environment)
        expectEqual(verified.app.id, vector.appId)
        expectEqual(verified.details.osVersion, vector.osVersion)
        expectEqual(verified.details.osBuild, vector.osBuild)
        expectEqual(verified.details.platform, vector.platform)
        expectEqual(verified.details.appID, vector.appId)
        expectEqual(verified.details.commonName, Hex.text(verified.keyID.bytes))
        #expect(verified.details.accessControl == (try vector.aclBlobB64.map(bytes)))
        expectEqual(
            verified.extensions.bundleVersion,
            vector.authDataExtensions?["apple_bundle_version_01"]
        )
        let category = vector.authDataExtensions?["apple_validation_category_01"]
        expectEqual(
            verified.extensions.validationCategory?.rawValue,
            category.flatMap { Hex.decode($0) }.map { UInt32($0[0]) }
        )
    }

    @Test(arguments: SharedVectors.attestations)
    func `time decides to the second`(vector: AttestationVector) throws {
        let genuine = try AttestationCase(vector)
        let last = try moment(vector.leafNotAfter)
        let first = try moment(vector.leafNotBefore)
        expectEqual(genuine.refusal { $0.time = last }, nil)
        expectEqual(genuine.refusal { $0.time = last.advanced(bySeconds: 1) }, .certificateExpired)
        expectEqual(genuine.refusal { $0.time = first }, nil)
        expectEqual(
            genuine.refusal { $0.time = first.advanced(bySeconds: -1) },
            .certificateExpired
        )
    }

    @Test(arguments: SharedVectors.attestations)
    func `each other expectation is refused with its own reason`(
        vector: AttestationVector
    ) throws {
        let genuine = try AttestationCase(vector)
        expectEqual(genuine.refusal { $0.clientDataHash[0] ^= 1 }, .nonceMismatch)
        expectEqual(genuine.refusal { $0.clientDataHash.removeLast() }, .nonceMismatch)
        expectEqual(genuine.refusal { $0.clientDataHash = [] }, .nonceMismatch)
        let other = KeyID(SHA256.digest(of: []))
        expectEqual(genuine.refusal { $0.keyID = other }, .keyIDMismatch)
        expectEqual(genuine.refusal { $0.appID += "x" }, .appMismatch)
        let otherEnvironments = Set(AttestationEnvironment.allCases)
            .subtracting(genuine.environments)
        expectEqual(genuine.refusal { $0.environments = otherEnvironments }, .environmentMismatch)
        expectEqual(genuine.refusal { $0.roots = [AppleRoots.rootG3] }, .certificateUntrusted)
        expectEqual(genuine.refusal { $0.roots = [] }, .certificateUntrusted)
        // A receipt's root beside the right one does no harm.
        expectEqual(genuine.refusal { $0.roots.insert(AppleRoots.rootG3, at: 0) }, nil)
    }

    @Test(arguments: SharedVectors.attestations)
    func `any byte of authData changed is refused`(vector: AttestationVector) throws {
        let genuine = try AttestationCase(vector)
        let parts = try AttestationParts(genuine.object)
        expectEqual(parts.encoded, genuine.object)
        // A third of the bytes of each, and over all of them every byte.
        let first = parts.authData.reduce(0) { $0 &+ Int($1) } % 3
        for offset in stride(from: first, to: parts.authData.count, by: 3) {
            let reason = genuine.refusal { other in
                var changed = parts
                changed.authData[offset] ^= 0x01
                other.object = changed.encoded
            }
            #expect(
                reason == .nonceMismatch || (reason == .malformed && offset >= 53),
                "offset \(offset): \(String(describing: reason))"
            )
        }
    }

    @Test(arguments: SharedVectors.attestations)
    func `x5c swapped, shortened, lengthened or doubled is refused`(
        vector: AttestationVector
    ) throws {
        let genuine = try AttestationCase(vector)
        let parts = try AttestationParts(genuine.object)
        let root = vector.attestationRoot.der
        let cases: [([[UInt8]], AttestationRefusal.Reason)] = [
            ([parts.x5c[1], parts.x5c[0]], .certificateUntrusted),
            ([parts.x5c[0], parts.x5c[0]], .certificateUntrusted),
            ([parts.x5c[1], parts.x5c[1]], .certificateUntrusted),
            ([parts.x5c[0], root], .certificateUntrusted),
            ([parts.x5c[0]], .malformed),
            ([], .malformed),
            (parts.x5c + [root], .malformed),
            ([parts.x5c[0] + [0], parts.x5c[1]], .malformed),
            ([[], parts.x5c[1]], .malformed),
        ]
        for (x5c, reason) in cases {
            expectEqual(
                genuine.refusal { other in
                    var changed = parts
                    changed.x5c = x5c
                    other.object = changed.encoded
                },
                reason
            )
        }
    }

    @Test(arguments: SharedVectors.attestations)
    func `the way the hash was made from the challenge is found`(
        vector: AttestationVector
    ) throws {
        guard let challenge = vector.challengeB64 else { return }
        let attestation = try UnverifiedAttestation(bytes: try bytes(vector.attestationB64))
        let mistake = AttestationDiagnosis.mistake(
            in: attestation,
            challenge: try bytes(challenge)
        )
        expectEqual(
            mistake,
            vector.clientDataHashFormedAs == "raw" ? .notHashed : ClientMistake.none
        )
        expectEqual(AttestationDiagnosis.mistake(in: attestation, challenge: [1, 2, 3]), nil)
    }

    @Test(arguments: SharedVectors.attestations)
    func `iPhones and Macs attest for one app that runs on both`(vector: AttestationVector) throws {
        let genuine = try AttestationCase(vector)
        expectEqual(genuine.refusal { $0.isMacOS = true }, nil)
    }

    @Test(arguments: SharedVectors.attestations)
    func `absence of a category or a version is a policy of its own`(
        vector: AttestationVector
    ) throws {
        let genuine = try AttestationCase(vector)
        let isPresent = vector.authDataExtensions != nil
        let needsCategory = BuildPolicy(
            categories: nil,
            acceptsAbsentCategory: false,
            bundleVersions: nil,
            acceptsAbsentBundleVersion: true
        )
        expectEqual(
            genuine.refusal { $0.builds = needsCategory },
            isPresent ? nil : .categoryRefused
        )
        let needsVersion = BuildPolicy(
            categories: nil,
            acceptsAbsentCategory: true,
            bundleVersions: nil,
            acceptsAbsentBundleVersion: false
        )
        // A beta of macOS 27 sent a category and no version.
        let hasVersion = vector.authDataExtensions?["apple_bundle_version_01"] != nil
        expectEqual(
            genuine.refusal { $0.builds = needsVersion },
            hasVersion ? nil : .versionRefused
        )
        let appStoreOnly = BuildPolicy(
            categories: [.appStore],
            acceptsAbsentCategory: true,
            bundleVersions: ["0"],
            acceptsAbsentBundleVersion: true
        )
        expectEqual(
            genuine.refusal { $0.builds = appStoreOnly },
            isPresent ? .categoryRefused : nil
        )
    }
}
