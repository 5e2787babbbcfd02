import AppAttest
import AppAttestServer
import Configuration
import Crypto
import Foundation
import SoftwareAuthenticator

// The whole conversation of a device and a server: challenge, attestation, assertion, receipt. The
// imports above are those of a server that has swift-crypto and swift-configuration as well.

let configuration = ConfigReader(provider: EnvironmentVariablesProvider())
let appID = configuration.string(forKey: "app.id", default: "ABCDE12345.com.example.shop")
let now = Date()

// The device and its authority, in software. A server has neither.
let authority = SoftwareAuthority(madeAt: UnixTime(now))
let device = SoftwareDevice(
    authority: authority,
    appID: appID,
    environment: .production,
    shape: .beforeTwentySeven
)
var key = device.makeKey()

var registry = DeviceRegistry(
    app: ExpectedApp(id: appID, environments: [.production], isMacOS: false, builds: .any),
    attestationRoots: [authority.root],
    receiptRoots: [authority.root]
)

let enrolment = registry.makeChallenge()
let record = try registry.enrol(
    attestation: Data(
        key.attestation(
            clientDataHash: Array(SHA256.hash(data: enrolment)),
            at: UnixTime(now)
        )
    ),
    keyID: key.keyID.base64,
    challenge: enrolment,
    now: now
)
print("enrolled: \(record.keyID.base64)")

let challenge = registry.makeChallenge()
let body = Data(#"{"item": 7}"#.utf8)
let assertion = Data(key.assertion(clientData: Array(challenge + body)))
try registry.admit(
    assertion: assertion,
    keyID: key.keyID.base64,
    challenge: challenge,
    body: body
)
print("admitted: one request")

do {
    let other = registry.makeChallenge()
    try registry.admit(
        assertion: assertion,
        keyID: key.keyID.base64,
        challenge: other,
        body: body
    )
    print("admitted: a replay, which must not be")
    exit(1)
} catch let refusal as AssertionRefusal {
    print("refused: \(refusal.reason.rawValue): \(refusal.localizedDescription)")
}

let receipt = key.receipt(
    .refreshed(riskMetric: 3),
    clientDataHash: Array(SHA256.hash(data: enrolment)),
    at: UnixTime(now)
)
let risk = try registry.risk(of: Data(receipt), keyID: key.keyID.base64)
print("receipt: about \(risk ?? 0) keys within 30 days")

let tried = Damages(authority: authority, appID: appID, now: UnixTime(now)).tried()
guard tried.others.isEmpty else {
    print(tried.others.joined(separator: "\n"))
    exit(1)
}
print("damaged: \(tried.count) objects, each refused for what it is")
