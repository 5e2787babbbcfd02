internal import AppAttest
internal import Cryptography
internal import Encodings
internal import Tokens

/// `inspect`: the contents of an object. It judges nothing, so none of the contents is trustworthy.
package enum ObjectDescription {
    /// The parts of an attestation.
    package static func attestation(_ bytes: [UInt8]) -> TrialReport {
        do throws(AttestationRefusal) {
            let object = try UnverifiedAttestation(bytes: bytes)
            let details = object.details
            return description([
                .init("key_id", .string(object.credentialID.base64)),
                .init("app_id_hash", .string(Facts.hex(object.appIDHash.bytes))),
                .init("environment", .text(object.environment?.rawValue)),
                .init("counter", .number(Int64(object.counter.rawValue))),
                .init("flags", .string(Facts.flags(object.flags))),
                .init("extensions", .object(Facts.build(object.extensions))),
                .init("nonce", .text(nonce(in: object.leaf))),
                .init("public_key", .text(publicKey(of: object.leaf))),
                .init("device", device(details)),
                .init(
                    "x5c",
                    .array([Facts.certificate(object.leaf), Facts.certificate(object.intermediate)])
                ),
                .init("receipt", receipt(object.receipt).json),
                .init("receipt_base64", .string(Base64.text(object.receipt))),
            ])
        } catch {
            return malformed(error.reason.rawValue, error.detail)
        }
    }

    package static func assertion(_ bytes: [UInt8]) -> TrialReport {
        do throws(AssertionRefusal) {
            let object = try UnverifiedAssertion(bytes: bytes)
            return description([
                .init("app_id_hash", .string(Facts.hex(object.appIDHash.bytes))),
                .init("counter", .number(Int64(object.counter.rawValue))),
                .init("flags", .string(Facts.flags(object.flags))),
                .init("extensions", .object(Facts.build(object.extensions))),
                .init("signature", .text(member("signature", of: bytes))),
                .init("authenticator_data", .text(member("authenticatorData", of: bytes))),
            ])
        } catch {
            return malformed(error.reason.rawValue, error.detail)
        }
    }

    package static func receipt(_ bytes: [UInt8]) -> TrialReport {
        do throws(ReceiptRefusal) {
            let fields = try UnverifiedReceipt(bytes: bytes).fields
            return description(
                Facts.receipt(fields) + [
                    .init("key_id", .text(fields.certificate.p256PublicKey.map { id(of: $0) })),
                    .init("public_key", .text(publicKey(of: fields.certificate))),
                    .init("token_bytes", .number(Int64(fields.token?.count ?? 0))),
                ]
            )
        } catch {
            return malformed(error.reason.rawValue, error.detail)
        }
    }

    /// The parts of a challenge of this gateway, in base64url with or without white space around
    /// it. Only a gateway can check its code.
    package static func challenge(_ text: [UInt8]) -> TrialReport {
        let text = text.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard let challenge = UnverifiedChallenge(text: text.span) else {
            return malformed(
                "challenge-malformed",
                "not \(UnverifiedChallenge.textCount) characters of base64url with a version and "
                    + "a purpose that are known"
            )
        }
        let epoch = String(challenge.epoch, radix: 16)
        return description([
            .init("version", .number(1)),
            .init("purpose", .string(challenge.purpose.name)),
            .init("epoch", .string(String(repeating: "0", count: 16 - epoch.count) + epoch)),
            .init("serial", .number(Int64(clamping: challenge.serial))),
            .init("expiry", .number(challenge.expiry)),
            .init("expires_at", .string(UnixTime(seconds: challenge.expiry).iso8601)),
        ])
    }

    private static func description(_ members: [JSONValue.Member]) -> TrialReport {
        TrialReport(status: .accepted, json: .object(members))
    }

    private static func malformed(_ reason: String, _ detail: String) -> TrialReport {
        TrialReport(
            status: .refused,
            json: .object([.init("reason", .string(reason)), .init("detail", .string(detail))])
        )
    }

    private static func device(_ details: LeafDetails) -> JSONValue {
        .object([
            .init("app_id", .text(details.appID)),
            .init("os_version", .text(details.osVersion)),
            .init("os_build", .text(details.osBuild)),
            .init("platform", .text(details.platform)),
            .init("track", .text(details.track)),
            .init("access_control", .text(details.accessControl.map { Base64.text($0) })),
        ])
    }

    /// The content of `SEQUENCE { [1] OCTET STRING }`; other values unchanged.
    private static func nonce(in leaf: X509Certificate) -> String? {
        leaf.extensionBytes(LeafDetails.nonceOID).map { der in
            let isUsual = der.count == 38 && der.starts(with: [0x30, 0x24, 0xA1, 0x22, 0x04, 0x20])
            return Facts.hex(isUsual ? Array(der.dropFirst(6)) : der)
        }
    }

    private static func publicKey(of certificate: X509Certificate) -> String? {
        certificate.p256PublicKey.map { Base64.text($0.x963) }
    }

    private static func id(of key: P256PublicKey) -> String { KeyID(of: key).base64 }

    /// A byte string of an object that was read already.
    private static func member(_ name: String, of bytes: [UInt8]) -> String? {
        do throws(CBORError) {
            let object = try CBORValue(
                decoding: bytes,
                budget: CBORBudget(bytesMax: UnverifiedAssertion.bytesMax, depthMax: 1, itemsMax: 5)
            )
            guard case .bytes(let value) = object[name] else { return nil }
            return Base64.text(value)
        } catch {
            return nil
        }
    }
}
