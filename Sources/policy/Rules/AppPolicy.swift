package import AppAttest
package import Signatures

/// One app on one platform, and the demands on its keys.
package struct AppPolicy: Sendable {
    /// How the client makes `clientDataHash` for `attestKey` out of the challenge's text.
    package enum ClientDataHash: String, CaseIterable, Sendable {
        /// SHA-256 of the text's bytes, as Apple's documentation has it.
        case sha256
        /// The text's bytes themselves, as Apple's sample has it.
        case raw
    }

    /// Which checks apply: a Mac's certificate has to have the right access control list. With
    /// `macos` that holds for every certificate that does not show another device.
    package enum Platform: String, CaseIterable, Sendable {
        case ios, macos
    }

    /// Whether an attestation must carry a receipt that verifies.
    package enum Receipt: String, CaseIterable, Sendable {
        case optional, required
    }

    /// The App ID: prefix, dot, bundle identifier. Of an Android app its package name.
    package let id: String
    /// SHA-256 of the id.
    package let hash: AppIDHash
    /// The environments that are accepted, of which Android has production alone; empty only for an
    /// app that is for tests alone.
    package let environments: Set<AttestationEnvironment>
    /// The authorities that are trusted beside Apple's, or in the place of Google's; empty unless
    /// this is a test app.
    ///
    /// Keys that they attest have the environment `test`, whatever an AAGUID says.
    package var testRoots: [X509Certificate] = []
    package var clientDataHash = ClientDataHash.sha256
    package var platform = Platform.ios
    /// Which builds are accepted, by what iOS and macOS 27 and later sign.
    package var builds = BuildPolicy.any
    package var receipt = Receipt.optional
    /// What is asked of the phones of an Android app; `nil` for an app of Apple's systems.
    package var android: AndroidDemands?

    package init(id: String, environments: Set<AttestationEnvironment>) {
        self.id = id
        hash = AppIDHash(appID: id)
        self.environments = environments
    }

    /// Who attests the app's keys. A request has to bring what keys of that platform sign.
    package var attestedBy: DevicePlatform { android == nil ? .apple : .android }
    /// Whether a test authority is trusted; every verdict about its keys then says `test`.
    package var isTest: Bool { !testRoots.isEmpty }
    /// Whether keys of devices in the field are accepted.
    ///
    /// A rule that names no apps admits the keys of such apps. Keys of test authorities, and of
    /// apps for developers alone, pass only where a rule names their app.
    package var isProduction: Bool { environments.contains(.production) }
}
