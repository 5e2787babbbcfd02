// swift-tools-version: 6.2
import PackageDescription

// deploy/test sets it: our own warnings are errors, those of dependencies are not.
let strict: [SwiftSetting] =
    Context.environment["PORTCULLIS_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]
let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + strict

// What the programs' version ends with. deploy/release and deploy/Containerfile set it: to nothing,
// for a release.
let build = Context.environment["PORTCULLIS_BUILD"] ?? "+dev"

// To use a library of this package without the gateway, write `traits: []` beside the package's
// address. SwiftPM then fetches nothing that carries this condition; swift-crypto is left, with
// swift-asn1.
let gateway: TargetDependencyCondition? = .when(traits: ["Gateway"])

func product(_ name: String, of package: String) -> Target.Dependency {
    .product(name: name, package: package, condition: gateway)
}

// What a dependency saves is in Sources/docs/dependencies.md, a line each.
let grdb = product("GRDB", of: "GRDB.swift")
// SQLite itself, for the tests' store alone: its system calls are replaced there.
let sqlite = product("GRDBSQLite", of: "GRDB.swift")
let yams = product("Yams", of: "Yams")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
// RSA, with which Google signs certificates of Android phones.
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let arguments = product("ArgumentParser", of: "swift-argument-parser")
let logging = product("Logging", of: "swift-log")
let histogram = product("Histogram", of: "hdrhistogram-swift")
let deque = product("DequeModule", of: "swift-collections")
// For tests alone: swift-openapi-runtime's signatures name its types.
let httpTypes = product("HTTPTypes", of: "swift-http-types")

let object: [Target.Dependency] = ["AppAttest", "Cryptography", "Signatures"]
// The gateway's; every other build of the libraries that verify has no OpenSSL.
let openSSL: Target.Dependency = .target(
    name: "COpenSSL",
    condition: .when(platforms: [.linux], traits: ["Gateway"])
)
let key: [Target.Dependency] = ["Cryptography", "DeviceKey", "Signatures"]
let kept: [Target.Dependency] = ["KeyStore", "Tokens"]
let policy: [Target.Dependency] =
    object + ["Encodings", "HTTPWire", "KeyAttestation", "RequestBinding", "Rules"]
let verdict: [Target.Dependency] = ["Tokens", "Verification", "KeyStore"]
let apple: [Target.Dependency] = ["KeyStore", "OutboundCalls", "Parties"]
let sockets: [Target.Dependency] = ["EventLoops", "Telemetry"]
let device: [Target.Dependency] = [
    "AppAttest", "KeyAttestation", "Encodings", "Cryptography", "RequestBinding", "Signatures",
]
let wires: [Target.Dependency] = ["CLinux", "EventLoops"]
let process: [Target.Dependency] = [
    "ConfigurationReading", "OutboundCalls", "Parties", "PostgreSQLKeyStore", "Proxy",
    "SQLiteKeyStore", "Services", logging,
]
let stand: [Target.Dependency] = ["SoftwareAuthenticator"]
let measured = [
    "AppAttest", "Tokens", "Cryptography", "Verification", "HTTPWire", "Encodings",
    "RequestBinding", "Rules", "KeyStore",
]
let load: [Target.Dependency] = [
    "ConfigurationReading", "Parties", "Services", "SoftwareAuthenticator", "Tokens",
    "Verification", histogram, deque,
]
let client: [Target.Dependency] = [
    "ConfigurationReading", "LoadGenerator", "SoftwareAuthenticator", "Verification", arguments,
]
let app: [Target.Dependency] = ["PortcullisClient", "PortcullisClientTesting"]
let fuzzed: [Target.Dependency] = [
    "ConfigurationReading", "HTTPWire", "KeyStore", "OutboundCalls", "Parties", "Rules",
    "Services", "SoftwareAuthenticator", "Tokens", "Verification",
]
let commands: [Target.Dependency] = [
    "ConfigurationReading", "DeviceKey", "Gateway", "KeyStore", "PostgreSQLKeyStore",
    "SQLiteKeyStore", arguments,
]
let demo: [Target.Dependency] =
    policy + commands + stand + app + ["AppleStandIn", "LoopbackKit"]
let proving: [Target.Dependency] =
    policy + stand
    + ["CLinux", "ConfigurationReading", "DeviceKey", "Gateway", "LoopbackSockets"]
    + ["Services", "Verification"]

// The gateway's release runs where no Swift is installed, and calls of Swift's runtime, of which a
// request makes hundreds, don't go through the tables of a shared library. Foundation's own parts
// are named: only a build that is static altogether finds them by itself. A program exports no
// symbols: -static-stdlib has it export all, and the linker then keeps what nothing calls. What is
// relocated is packed (DT_RELR), which glibc 2.36 reads.
let standalone: LinkerSetting = .unsafeFlags(
    [
        "-static-stdlib", "-lCoreFoundation", "-l_FoundationCShims", "-l_FoundationCollections",
        "-l_FoundationICU", "-use-ld=lld", "-Xlinker", "--no-export-dynamic",
        "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
    ],
    .when(configuration: .release)
)

// Libraries that no build here can fetch, as far as the recipes use them.
let adapted: [Target.Dependency] = [
    "AlamofireStandIn", "ApolloStandIn", "OpenAPIRuntimeStandIn", httpTypes,
]
// With these flags, a recipe's `import Alamofire` finds the stand-in.
let standIns: SwiftSetting = .unsafeFlags(
    ["Alamofire", "Apollo", "OpenAPIRuntime"].flatMap { ["-module-alias", "\($0)=\($0)StandIn"] }
)

// What an app's privacy report is made of. Linux has no use for it.
let privacy = ["PrivacyInfo.xcprivacy"]
#if canImport(Darwin)
    let isApple = true
#else
    let isApple = false
#endif

extension Target {
    /// A C target that shows Swift what it can't see by itself.
    static func bridge(
        _ name: String,
        in group: String,
        links: [String] = [],
        defines values: [CSetting] = []
    ) -> Target {
        .target(
            name: name,
            path: "Sources/\(group)/\(name)",
            cSettings: values,
            linkerSettings: links.map { .linkedLibrary($0) }
        )
    }

    /// A part of the gateway: a library target in a group under Sources.
    static func part(
        _ name: String,
        in group: String,
        uses: [Target.Dependency] = [],
        ships report: [String] = [],
        embeds pages: [String] = []
    ) -> Target {
        .target(
            name: name,
            dependencies: uses,
            path: "Sources/\(group)/\(name)",
            exclude: isApple ? [] : report,
            resources: (isApple ? report.map { .copy($0) } : []) + pages.map { .embedInCode($0) },
            swiftSettings: settings
        )
    }

    /// Parsers: each use of memory that the compiler does not check says `unsafe`.
    func marksUnsafe() -> Target {
        swiftSettings = (swiftSettings ?? []) + [.strictMemorySafety()]
        return self
    }

    /// Files that an app copies, compiled against stand-ins. No product.
    static func recipes(
        _ name: String,
        in group: String,
        uses: [Target.Dependency]
    ) -> Target {
        .target(
            name: name,
            dependencies: uses,
            path: "Sources/\(group)/\(name)",
            swiftSettings: settings + [standIns]
        )
    }

    /// A program in a group under Sources.
    static func program(
        _ name: String,
        in group: String,
        uses: [Target.Dependency],
        links: [LinkerSetting] = []
    ) -> Target {
        .executableTarget(
            name: name,
            dependencies: uses,
            path: "Sources/\(group)/\(name)",
            swiftSettings: settings,
            linkerSettings: links
        )
    }

    /// A program of the tests.
    static func testProgram(_ name: String, uses: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name,
            dependencies: uses,
            path: "Tests/" + name,
            swiftSettings: settings
        )
    }

    /// What several test targets share.
    static func support(_ name: String, uses: [Target.Dependency]) -> Target {
        .target(name: name, dependencies: uses, path: "Tests/" + name, swiftSettings: settings)
    }

    /// Somebody else's code, which sees what is public and nothing more. Tests/Sample, a package of
    /// its own, compiles it too.
    static func sample(_ name: String, uses: [Target.Dependency]) -> Target {
        .target(
            name: name,
            dependencies: uses,
            path: "Tests/Sample/Sources/" + name,
            packageAccess: false,
            swiftSettings: settings
        )
    }

    /// Tests of no single part. Scenarios: client, gateway and origin over loopback.
    static func scenarios(
        _ name: String,
        uses: [Target.Dependency],
        data: [String] = []
    ) -> Target {
        .testTarget(
            name: name,
            dependencies: ["Expectations"] + uses,
            exclude: data,
            swiftSettings: settings
        )
    }

    /// The tests of one part.
    static func tests(_ name: String, uses: [Target.Dependency] = []) -> Target {
        .testTarget(
            name: name + "Tests",
            dependencies: [.target(name: name), "Expectations"] + uses,
            swiftSettings: settings
        )
    }
}

let package = Package(
    name: "portcullis",
    // What the client and AppAttest need; TidyTests hold their code to it. The other libraries are
    // for Linux: they use OpenSSL and, of Swift, what Apple's systems have since 26.
    platforms: [.iOS(.v16), .macOS(.v13), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "AppAttest", targets: ["AppAttest"]),
        .library(name: "DeviceKey", targets: ["DeviceKey"]),
        .library(name: "KeyAttestation", targets: ["KeyAttestation"]),
        .library(name: "PortcullisClient", targets: ["PortcullisClient"]),
        .library(name: "PortcullisClientTesting", targets: ["PortcullisClientTesting"]),
        .library(name: "RequestBinding", targets: ["RequestBinding"]),
        .library(name: "SoftwareAuthenticator", targets: ["SoftwareAuthenticator"]),
        // For Tests/Benchmarks, a package of its own: it sees the products of this one, and what
        // they declare as `package`. Nobody else has a use for it.
        .library(name: "Parts", targets: measured),
        .executable(name: "portcullis", targets: ["portcullis"]),
        .executable(name: "portcullis-demo", targets: ["portcullis-demo"]),
        .executable(name: "portcullis-load", targets: ["portcullis-load"]),
        .executable(name: "portcullis-prove", targets: ["portcullis-prove"]),
    ],
    traits: [
        .trait(
            name: "Gateway",
            description: "The programs and what they depend on; the libraries need none of it."
        ),
        .default(enabledTraits: ["Gateway"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // Sources/base: bytes, texts, cryptography, counters. Pure.
        .bridge("COpenSSL", in: "base", links: ["ssl", "crypto"]),
        .bridge("CBuild", in: "base", defines: [.define("PORTCULLIS_BUILD", to: "\"\(build)\"")]),
        .part("Encodings", in: "base").marksUnsafe(),
        .part("Telemetry", in: "base", uses: ["CBuild"]),
        .part("Signatures", in: "base", uses: ["Encodings", openSSL, crypto]),
        .part("Cryptography", in: "base", uses: ["COpenSSL", "Encodings", "Signatures"]),

        // Sources/attestation: what a device proves. Pure.
        .part("DeviceKey", in: "attestation", uses: ["Encodings", "Signatures"]),
        .part("AppAttest", in: "attestation", uses: ["DeviceKey", "Encodings", "Signatures"])
            .marksUnsafe(),
        .part(
            "KeyAttestation",
            in: "attestation",
            uses: ["DeviceKey", "Encodings", "Signatures", crypto, cryptoExtras]
        ).marksUnsafe(),

        // Sources/http: messages and their parts. Pure.
        .part("HTTPWire", in: "http", uses: ["CNGHTTP2", "Encodings"]).marksUnsafe(),

        // Sources/policy: what is asked of a request, and whether it has it. Pure but for the
        // challenges and sessions, which the event loops share.
        .part("RequestBinding", in: "policy", uses: ["Encodings"]).marksUnsafe(),
        .part(
            "Rules",
            in: "policy",
            uses: object + ["Encodings", "HTTPWire", "KeyAttestation", "RequestBinding"]
        ),
        .part(
            "Tokens",
            in: "policy",
            uses: key + ["AppAttest", "Encodings", "RequestBinding", crypto, cryptoExtras]
        ).marksUnsafe(),
        .part("Verification", in: "policy", uses: policy + kept + ["Telemetry"]),

        // Sources/keys: keys and counters, in memory and on disk. Shared by the event loops.
        .part(
            "KeyStore",
            in: "keys",
            uses: key + ["Encodings", "RequestBinding", "Telemetry", "Tokens"]
        ),
        .part("SQLiteKeyStore", in: "keys", uses: key + ["KeyStore", grdb, sqlite]),
        .bridge("CPostgreSQL", in: "keys", links: ["pq"]),
        .part(
            "PostgreSQLKeyStore",
            in: "keys",
            uses: key + kept + ["CPostgreSQL", "Encodings", "Telemetry"]
        ),

        // Sources/net: sockets.
        .bridge("CLinux", in: "net"),
        .bridge("CCurl", in: "net", links: ["curl"]),
        .bridge("CNGHTTP2", in: "net", links: ["nghttp2"]),
        .part("OutboundCalls", in: "net", uses: ["Encodings", "Telemetry", "Verification"]),
        .part("EventLoops", in: "net", uses: ["CLinux", "COpenSSL", "Encodings"]),

        // Sources/settings: how settings are declared and read.
        .part(
            "SettingsReading",
            in: "settings",
            uses: ["CLinux", "Cryptography", "Encodings", "HTTPWire", "Rules", "Signatures", yams]
        ),

        // Sources/proxy: requests between clients and origins.
        .part(
            "Services",
            in: "proxy",
            uses: policy + verdict + ["DeviceKey", "Telemetry"],
            embeds: ["Page"]
        ),
        .part("Proxy", in: "proxy", uses: policy + verdict + sockets + ["Services", deque]),

        // Sources/parties: whom the gateway asks.
        .part(
            "Parties",
            in: "parties",
            uses: policy + kept
                + ["DeviceKey", "EventLoops", "OutboundCalls", "Services", "SettingsReading"]
                + ["Telemetry", "Verification", cryptoExtras, logging],
            embeds: ["GoogleList/Snapshot"]
        ),

        // Sources/gateway: the program, its configuration and its commands.
        .part(
            "ConfigurationReading",
            in: "gateway",
            uses: policy + apple
                + ["CLinux", "DeviceKey", "Proxy", "Services", "SettingsReading", "Tokens"]
                + ["Verification"]
        ),
        .part(
            "Gateway",
            in: "gateway",
            uses: policy + verdict + sockets + process + ["CCurl", "CLinux"]
        ),
        .program(
            "portcullis",
            in: "gateway",
            uses: policy + commands
                + ["Parties", "Proxy", "Services", "Telemetry", "Verification"],
            links: [standalone]
        ),

        // Sources/client: the app's half.
        .part("PortcullisClient", in: "client", uses: ["RequestBinding", crypto], ships: privacy),
        .part(
            "PortcullisClientTesting",
            in: "client",
            uses: ["Encodings", "PortcullisClient", crypto]
        ),
        .recipes("ClientRecipes", in: "client", uses: ["PortcullisClient"] + adapted),

        // Sources/tools: for load and the proving of clients. Never linked into the gateway.
        .part("SoftwareAuthenticator", in: "tools", uses: device + [crypto]),
        .part("LoopbackSockets", in: "tools", uses: ["HTTPWire"]),
        .part("ProvingGround", in: "tools", uses: proving),
        .part("LoadGenerator", in: "tools", uses: policy + sockets + load),
        .program(
            "portcullis-load",
            in: "tools",
            uses: policy + sockets + client,
            links: [standalone]
        ),
        .program(
            "portcullis-prove",
            in: "tools",
            uses: ["Cryptography", "LoopbackSockets", "ProvingGround", arguments],
            links: [standalone]
        ),

        // Tests.
        .sample("AppAttestServer", uses: ["AppAttest", crypto]),
        .sample("KeyAttestationServer", uses: ["KeyAttestation", crypto]),
        .support("Expectations", uses: []),
        .support("TestSupport", uses: policy + verdict + ["Expectations"]),
        .support(
            "LoopbackKit",
            uses: ["CLinux", "CNGHTTP2", "ConfigurationReading", "EventLoops", "Gateway"]
                + ["Parties"]
        ),
        .support("ClientKit", uses: app),
        .support(
            "AppleStandIn",
            uses: device + apple + sockets + stand + [crypto, cryptoExtras]
        ),
        .support("ProvingDriver", uses: app + ["ClientKit"]),
        .support("AlamofireStandIn", uses: []),
        .support("ApolloStandIn", uses: []),
        .support("OpenAPIRuntimeStandIn", uses: [httpTypes]),
        .testProgram("portcullis-demo", uses: demo),
        // The gateway on a disk that fails; an app and Apple's services in processes of their own.
        .testProgram("portcullis-faulty", uses: commands + [grdb, sqlite]),
        .testProgram("portcullis-app", uses: app + ["ClientKit", "ProvingDriver"]),
        .testProgram("portcullis-apple", uses: ["AppleStandIn"]),
        // What deploy/locale-data leaves out of Foundation's data.
        .testProgram("portcullis-locales", uses: []),
        .testProgram(
            "portcullis-suites",
            uses: ["Encodings", "KeyAttestation", "RequestBinding", "Signatures", "Tokens"]
        ),
        .support("FuzzTargets", uses: device + fuzzed),
        .scenarios("FuzzTests", uses: ["FuzzTargets"]),
        .scenarios("TidyTests", uses: []),
        .scenarios("TextTests", uses: policy + ["LoopbackKit", "Services", "Verification"]),
        .tests("Encodings"),
        .tests("Telemetry", uses: ["TestSupport"]),
        .tests(
            "HTTPWire",
            uses: ["CNGHTTP2", "Encodings", "FuzzTargets", "Services", "TestSupport"]
        ),
        .tests("RequestBinding"),
        .tests("Cryptography", uses: ["Encodings", "Signatures"]),
        .tests(
            "Signatures",
            uses: ["AppAttest", "COpenSSL", "Cryptography", "Encodings", "TestSupport"]
        ),
        .tests(
            "AppAttest",
            uses: ["AppAttestServer", "Cryptography", "Encodings", "TestSupport"] + stand
        ),
        .tests(
            "KeyAttestation",
            uses: ["Cryptography", "DeviceKey", "Encodings", "KeyAttestationServer"]
                + ["Signatures", "TestSupport"] + stand
        ),
        .tests("Rules", uses: object + ["Encodings", "HTTPWire", "RequestBinding", "TestSupport"]),
        .tests(
            "Verification",
            uses: policy + stand + ["KeyStore", "Services", "Telemetry", "TestSupport", "Tokens"]
        ),
        .tests("Tokens", uses: object + stand + ["Encodings", "RequestBinding"]),
        .tests("KeyStore", uses: policy + ["TestSupport", "Tokens"]),
        .tests(
            "PostgreSQLKeyStore",
            uses: policy + kept + ["ConfigurationReading", "LoopbackKit", "TestSupport"]
        ),
        .tests("SQLiteKeyStore", uses: policy + verdict + ["DeviceKey", "TestSupport", grdb]),
        .scenarios(
            "SimulationTests",
            uses: policy + verdict + ["DeviceKey", "SQLiteKeyStore", "TestSupport"]
        ),
        .tests(
            "ConfigurationReading",
            uses: policy + apple + stand
                + ["AppleStandIn", "Proxy", "TestSupport", "Tokens", "Verification"]
        ),
        .tests(
            "Gateway",
            uses: policy + process
                + ["AppleStandIn", "EventLoops", "KeyStore", "LoopbackKit", "Telemetry"]
        ),
        .tests("EventLoops", uses: ["COpenSSL"]),
        .tests("OutboundCalls"),
        .tests("Services", uses: policy + verdict + ["Parties", "Telemetry"]),
        .tests("Proxy", uses: policy + verdict + sockets + ["Services"]),
        .tests(
            "Parties",
            uses: policy + verdict + stand
                + ["AppleStandIn", "ConfigurationReading", "DeviceKey", "LoopbackKit"]
                + ["OutboundCalls", "SQLiteKeyStore", "Services", "SettingsReading", "Telemetry"]
                + ["TestSupport", logging]
        ),
        .tests(
            "PortcullisClient",
            uses: ["ClientKit", "ClientRecipes", "RequestBinding", "LoopbackKit", "TestSupport"]
                + adapted + [crypto]
        ),
        .tests("SoftwareAuthenticator", uses: policy + ["TestSupport"]),
        .tests("LoadGenerator", uses: policy + load),
        .tests(
            "ProvingGround",
            uses: ["ConfigurationReading", "LoopbackKit", "LoopbackSockets", "ProvingDriver"]
        ),
        .tests("PortcullisClientTesting", uses: object + ["PortcullisClient"]),
        .scenarios(
            "ClientScenarios",
            uses: demo + adapted
                + ["ClientKit", "ClientRecipes", "Parties", "Services"]
                + ["TestSupport", "Verification"]
        ),
        .scenarios(
            "HTTPScenarios",
            uses: policy + commands + wires
                + ["LoopbackKit", "Proxy", "Services", "Telemetry", "TestSupport", "Verification"]
                + [logging],
            data: ["Cases"]
        ),
        .scenarios(
            "EnforcementScenarios",
            uses: policy + commands + stand + app
                + ["AppleStandIn", "CLinux", "EventLoops", "LoopbackKit", "OutboundCalls"]
                + ["Parties", "Services", "Telemetry", "TestSupport", grdb]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// deploy/test and deploy/fuzz set it: this program needs libFuzzer, which Apple's toolchains lack.
if Context.environment["PORTCULLIS_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "FuzzProgram",
            dependencies: ["FuzzTargets", "HTTPWire"],
            path: "Tests/FuzzProgram",
            swiftSettings: settings + [.unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"])],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer"])]
        )
    )
}
