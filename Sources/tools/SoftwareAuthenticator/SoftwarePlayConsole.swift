internal import Crypto
internal import Cryptography
internal import Encodings
internal import Signatures

/// What Google says in a token.
package struct SoftwarePlayVerdict: Hashable, Sendable {
    package var package = "com.example.shop"
    /// The app that has asked; Google reads its tokens for this app alone.
    package var appPackage = "com.example.shop"
    /// `requestHash` of a standard request; `nonce` of a classic one.
    package var hash: String
    package var isClassic = false
    package var milliseconds: Int64
    package var device = ["MEETS_BASIC_INTEGRITY", "MEETS_DEVICE_INTEGRITY"]
    package var recognition = "PLAY_RECOGNIZED"
    /// Base64url of SHA-256 of the signing certificates.
    package var signers: [String]
    package var licensing = "LICENSED"
    package var activity: String? = "LEVEL_1"
    package var playProtect: String? = "NO_ISSUES"
    package var isTest = false

    /// - clientDataHash: 32 bytes.
    /// - milliseconds: since 1970.
    package init(clientDataHash: [UInt8], at milliseconds: Int64, signer: [UInt8]) {
        hash = Base64.urlText(clientDataHash)
        self.milliseconds = milliseconds
        signers = [Base64.urlText(signer)]
    }

    /// What is left for a second reader.
    package var cleared: SoftwarePlayVerdict {
        var cleared = self
        cleared.device = []
        (cleared.recognition, cleared.licensing) = ("UNEVALUATED", "UNEVALUATED")
        (cleared.activity, cleared.playProtect) = (nil, nil)
        return cleared
    }

    /// The payload of a token.
    package var json: String {
        var json = JSONWriter()
        json.object { json in
            json.object("requestDetails") { json in
                json.member("requestPackageName", package)
                json.member(isClassic ? "nonce" : "requestHash", hash)
                json.member("timestampMillis", String(milliseconds))
            }
            json.object("appIntegrity") { json in
                json.member("appRecognitionVerdict", recognition)
                guard recognition != "UNEVALUATED" else { return }
                json.member("packageName", appPackage)
                json.texts("certificateSha256Digest", signers)
                json.member("versionCode", "42")
            }
            json.object("deviceIntegrity") { json in
                json.texts("deviceRecognitionVerdict", device)
                if let activity {
                    json.object("recentDeviceActivity") {
                        $0.member("deviceActivityLevel", activity)
                    }
                }
            }
            json.object("accountDetails") { $0.member("appLicensingVerdict", licensing) }
            if let playProtect {
                json.object("environmentDetails") { $0.member("playProtectVerdict", playProtect) }
            }
            if isTest { json.object("testingDetails") { $0.member("isTestingResponse", true) } }
        }
        return json.text
    }
}

/// The two keys of the Play Console, and the tokens of classic requests.
package struct SoftwarePlayConsole: Sendable {
    private let key: SymmetricKey
    private let signer: P256PrivateKey

    package init() { (key, signer) = (SymmetricKey(size: .bits256), P256PrivateKey()) }

    /// Each seed always gives the same keys.
    package init(seed: [UInt8]) {
        key = SymmetricKey(
            data: Signatures.SHA256.digest(of: seed + Array(" decryption".utf8)).array
        )
        signer = P256PrivateKey(seed: (seed + Array(" verification".utf8)).span)
    }

    /// The files, in base64 as the Play Console shows them.
    package var decryptionKey: String { Base64.text(key.withUnsafeBytes { Array($0) }) }
    package var verificationKey: String {
        let prefix: [UInt8] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06,
            0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ]
        return Base64.text(prefix + signer.publicKey.x963)
    }

    /// A token with a payload.
    ///
    /// - header: of the encryption.
    /// - inner: the header of the signature.
    package func token(
        _ payload: String,
        header: String = #"{"alg":"A256KW","enc":"A256GCM"}"#,
        inner: String = #"{"alg":"ES256"}"#
    ) throws -> String {
        let signed = "\(Base64.urlText(inner.utf8)).\(Base64.urlText(payload.utf8))"
        let signature = signer.joseSignature(message: Array(signed.utf8).span)
        let content = SymmetricKey(size: .bits256)
        let head = Base64.urlText(header.utf8)
        let box = try AES.GCM.seal(
            Array("\(signed).\(Base64.urlText(signature))".utf8),
            using: content,
            authenticating: Array(head.utf8)
        )
        let wrapped = try AES.KeyWrap.wrap(content, using: key)
        return [
            head, Base64.urlText(wrapped), Base64.urlText(box.nonce),
            Base64.urlText(box.ciphertext), Base64.urlText(box.tag),
        ].joined(separator: ".")
    }
}
