// swift-tools-version: 6.2
import PackageDescription

// A package of its own that uses this one as any server or app would: from outside, by its products
// alone. It is there to be built beside packages that servers have, which shows that no name
// collides, and to be run. Tests/Sample/run does both.
//
// `traits: []` leaves out what only the gateway needs.
// Tests/Sample/run takes it by version, from a repository with a tag: such a package may use less
// than one in a folder, no unsafe flags for instance.
let portcullis: Package.Dependency =
    if let repository = Context.environment["SAMPLE_REPOSITORY"],
        let version = Context.environment["SAMPLE_VERSION"].flatMap({ Version($0) })
    {
        .package(url: repository, exact: version, traits: [])
    } else {
        .package(name: "portcullis", path: "../..", traits: [])
    }
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let attest: Target.Dependency = .product(name: "AppAttest", package: "portcullis")
let keys: Target.Dependency = .product(name: "KeyAttestation", package: "portcullis")
let device: Target.Dependency = .product(name: "SoftwareAuthenticator", package: "portcullis")
let client: Target.Dependency = .product(name: "PortcullisClient", package: "portcullis")
let testing: Target.Dependency = .product(name: "PortcullisClientTesting", package: "portcullis")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")

let package = Package(
    name: "sample",
    platforms: [.macOS(.v26)],
    dependencies: [
        portcullis,
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
    ],
    targets: [
        .target(
            name: "AppAttestServer",
            dependencies: [attest, crypto],
            swiftSettings: settings
        ),
        .target(
            name: "KeyAttestationServer",
            dependencies: [keys, crypto],
            swiftSettings: settings
        ),
        // An app, as the client's documentation says it, on Linux.
        .executableTarget(
            name: "SampleClient",
            dependencies: [client, testing],
            swiftSettings: settings
        ),
        // AppAttest alone, which links no OpenSSL.
        .executableTarget(
            name: "SampleVerifier",
            dependencies: [attest],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "Sample",
            dependencies: [
                "AppAttestServer", attest, device, crypto,
                .product(name: "Configuration", package: "swift-configuration"),
            ],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)

// Tests/Sample/run --hummingbird sets it: the same beside Hummingbird and its forty packages, which
// takes minutes to build.
if Context.environment["SAMPLE_HUMMINGBIRD"] != nil {
    package.dependencies.append(
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1")
    )
    package.targets.append(
        .executableTarget(
            name: "SampleHTTP",
            dependencies: [
                "AppAttestServer", attest,
                .product(name: "Hummingbird", package: "hummingbird"),
            ],
            swiftSettings: settings
        )
    )
}
