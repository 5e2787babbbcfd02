// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that whoever builds the gateway builds none of it. deploy/benchmark runs
// it.
//
// The parts of the gateway show themselves to each other with `package`. What is measured here is
// what the gateway calls, so this package takes its name: the one that the package manager gives to
// the folder two levels up.
let folder = Context.packageDirectory.split(separator: "/").dropLast(2).last ?? "portcullis"
let identifier = String(folder.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .unsafeFlags(["-package-name", identifier]),
]

let parts: Target.Dependency = .product(name: "Parts", package: "portcullis")
let device: Target.Dependency = .product(name: "SoftwareAuthenticator", package: "portcullis")

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "portcullis", path: "../..")],
    targets: [
        // Counts allocations by standing in front of the C library's allocator.
        .target(name: "CAllocations"),
        .executableTarget(
            name: "micro-benchmarks",
            dependencies: ["CAllocations", parts, device],
            packageAccess: false,
            swiftSettings: settings
        ),
        .executableTarget(
            name: "signed-requests",
            dependencies: [parts, device],
            packageAccess: false,
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
