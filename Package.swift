// swift-tools-version: 6.3
import PackageDescription

// Layers and their directions are drawn in docs/ARCHITECTURE.md and enforced by `./dev check`.
// Each dependency has its reason in docs/HACKING.md.

// For every target under Sources: code that the compiler cannot prove safe must be marked `unsafe`,
// or it does not build (docs/HACKING.md).
let strict: [SwiftSetting] = [
    .strictMemorySafety(), .treatWarning("StrictMemorySafety", as: .error),
]

// SwiftPM recompiles a target only if a module that it names has changed. A module that imports
// Cordwood also contains layouts and constants of these modules (by `Exports.swift`). It names them
// only for that reason: otherwise a build would mix old and new ones.
let underCordwood: [Target.Dependency] = [
    "CordwoodEngine", "CordwoodShip", "CordwoodTrace", "CordwoodStore", "CordwoodCore",
    "CordwoodFormats",
]

// Packages of others that only servers and the command line need. tools/swiftpm.sh builds them
// once, outside of the checkout, and then gives the compiler and the linker what it has built.
let isPrebuilt = Context.environment["CORDWOOD_PREBUILT"] != nil
let packages: [Package.Dependency] = [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
]
let argumentParser: [Target.Dependency] =
    isPrebuilt ? [] : [.product(name: "ArgumentParser", package: "swift-argument-parser")]
let nio: [Target.Dependency] =
    isPrebuilt
    ? [] : ["NIOCore", "NIOPosix", "NIOHTTP1"].map { .product(name: $0, package: "swift-nio") }

let underTest: [Target.Dependency] = underCordwood + ["CordwoodTestSupport"]

let package = Package(
    name: "cordwood",
    products: [
        .library(name: "Cordwood", targets: ["Cordwood"]),
        // A handler for swift-log.
        .library(name: "CordwoodLogging", targets: ["CordwoodLogging"]),
        // Uploads through Foundation's URLSession; errors of its requests.
        .library(name: "CordwoodURLSession", targets: ["CordwoodURLSession"]),
        // Captures what Foundation's URLSession sends and receives.
        .library(name: "CordwoodHTTPCapture", targets: ["CordwoodHTTPCapture"]),
        // Linked into build/lib/libcordwood.{so,a} by `./dev build`; Swift programs use Cordwood.
        .library(name: "CordwoodABI", type: .static, targets: ["CordwoodABI"]),
        .executable(name: "cordwood", targets: ["CordwoodCLI"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0")
    ] + (isPrebuilt ? [] : packages),
    targets: [
        .systemLibrary(name: "CCordwood", path: "include/cordwood"),
        .systemLibrary(
            name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(
            name: "CLZ4", pkgConfig: "liblz4", providers: [.apt(["liblz4-dev"])]),
        .systemLibrary(
            name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        .systemLibrary(
            name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(
            name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        .systemLibrary(
            name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .target(name: "CShims"),
        .target(name: "CCurl"),

        .target(
            name: "CordwoodFormats",
            dependencies: ["CExpat", "CJansson", "CSodium", "CZlib", "CZstd"],
            swiftSettings: strict),
        .target(
            name: "CordwoodCore", dependencies: ["CShims", "CCordwood"], swiftSettings: strict),
        .target(
            name: "CordwoodStore",
            dependencies: [
                "CordwoodCore", "CordwoodFormats", "CLZ4", "CShims", "CSodium", "CZstd",
            ],
            swiftSettings: strict),
        .target(
            name: "CordwoodShip",
            dependencies: [
                "CordwoodStore", "CordwoodCore", "CordwoodFormats", "CCurl", "CLZ4", "CShims",
                "CSodium", "CZlib", "CZstd",
            ],
            swiftSettings: strict),
        .target(
            name: "CordwoodTrace",
            dependencies: [
                "CordwoodStore", "CordwoodCore", "CordwoodFormats", "CCordwood", "CExpat", "CShims",
            ],
            swiftSettings: strict),
        .target(
            name: "CordwoodEngine",
            dependencies: [
                "CordwoodShip", "CordwoodTrace", "CordwoodStore", "CordwoodCore", "CordwoodFormats",
                "CCordwood", "CShims",
            ],
            swiftSettings: strict),
        .target(
            name: "Cordwood",
            dependencies: [
                "CordwoodEngine", "CordwoodShip", "CordwoodTrace", "CordwoodStore", "CordwoodCore",
                "CordwoodFormats", "CCordwood", "CShims",
            ],
            swiftSettings: strict),
        .target(
            name: "CordwoodLogging",
            dependencies: ["Cordwood", .product(name: "Logging", package: "swift-log")]
                + underCordwood,
            swiftSettings: strict),
        .target(
            name: "CordwoodURLSession", dependencies: ["Cordwood"] + underCordwood,
            swiftSettings: strict),
        .target(
            name: "CordwoodHTTPCapture",
            dependencies: ["Cordwood", "CordwoodURLSession"] + underCordwood,
            swiftSettings: strict),
        .target(
            name: "CordwoodABI",
            dependencies: [
                "CordwoodEngine", "CordwoodShip", "CordwoodTrace", "CordwoodStore", "CordwoodCore",
                "CordwoodFormats", "CCordwood", "CShims",
            ],
            swiftSettings: strict),
        .target(
            name: "CordwoodServing",
            dependencies: nio,
            swiftSettings: strict),
        // page.c embeds its files, which lie in page/.
        .target(name: "CViewerPage", exclude: ["page"]),
        .target(
            name: "CordwoodViewer",
            dependencies: [
                "Cordwood", "CordwoodServing", "CViewerPage",
            ] + nio + underCordwood,
            swiftSettings: strict),
        .target(
            name: "CordwoodCollector",
            dependencies: [
                "Cordwood", "CordwoodServing",
            ] + nio + underCordwood,
            swiftSettings: strict),
        .target(name: "CArguments"),
        .executableTarget(
            name: "CordwoodCLI",
            dependencies: [
                "CArguments", "Cordwood", "CordwoodCollector", "CordwoodServing", "CordwoodViewer",
            ] + argumentParser + underCordwood,
            swiftSettings: strict),

        // What the tests share: sizes of a run, seeded numbers.
        .target(name: "CordwoodTestSupport", path: "Tests/CordwoodTestSupport"),
        .testTarget(name: "CordwoodFormatsTests", dependencies: ["CordwoodFormats"]),
        .testTarget(name: "CordwoodCoreTests", dependencies: ["CordwoodCore"]),
        .testTarget(
            name: "CordwoodStoreTests",
            dependencies: [
                "CShims", "CordwoodStore", "CordwoodCore", "CordwoodFormats", "CordwoodTestSupport",
            ]),
        .testTarget(
            name: "CordwoodShipTests", dependencies: ["CordwoodURLSession"] + underTest),
        .testTarget(name: "CordwoodTraceTests", dependencies: ["Cordwood"] + underTest),
        .testTarget(name: "CordwoodEngineTests", dependencies: ["Cordwood"] + underTest),
        .testTarget(name: "CordwoodTests", dependencies: ["Cordwood"] + underTest),
        .testTarget(
            name: "CordwoodLoggingTests",
            dependencies: [
                "CordwoodLogging", "Cordwood", .product(name: "Logging", package: "swift-log"),
            ] + underTest),
        .testTarget(
            name: "CordwoodCollectorTests",
            dependencies: ["CordwoodCollector", "CordwoodServing"] + underTest),
        .testTarget(
            name: "CordwoodViewerTests",
            dependencies: [
                "CordwoodViewer", "CordwoodServing", "Cordwood",
            ] + nio + underTest),
        .testTarget(
            name: "CordwoodHTTPCaptureTests",
            dependencies: ["CordwoodHTTPCapture", "CordwoodURLSession", "Cordwood"]
                + underTest),
        .testTarget(
            name: "CordwoodCLITests",
            dependencies: ["CordwoodCLI", "CordwoodCollector", "CordwoodServing", "Cordwood"]
                + underTest),
    ]
)
