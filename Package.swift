// swift-tools-version: 6.2
import PackageDescription

// Layers and their directions are drawn in docs/ARCHITECTURE.md and enforced by `./dev check`.
// Each dependency has its reason in docs/HACKING.md.

// Of every target under Sources: what the compiler cannot prove safe is marked `unsafe` there, or
// does not build (docs/HACKING.md).
let strict: [SwiftSetting] = [
    .strictMemorySafety(), .treatWarning("StrictMemorySafety", as: .error),
]

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
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    ],
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
            dependencies: ["Cordwood", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict),
        .target(
            name: "CordwoodURLSession", dependencies: ["Cordwood"], swiftSettings: strict),
        .target(
            name: "CordwoodHTTPCapture", dependencies: ["Cordwood", "CordwoodURLSession"],
            swiftSettings: strict),
        .target(
            name: "CordwoodABI",
            dependencies: [
                "CordwoodEngine", "CordwoodShip", "CordwoodTrace", "CordwoodStore", "CordwoodCore",
                "CordwoodFormats", "CCordwood", "CShims",
            ],
            swiftSettings: strict),
        .target(
            name: "CordwoodCollector",
            dependencies: [
                "Cordwood",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "CordwoodCLI",
            dependencies: [
                "Cordwood", "CordwoodCollector",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),

        .testTarget(
            name: "CordwoodCoreTests",
            dependencies: ["CordwoodCore", "CordwoodFormats", "CordwoodStore"]),
        .testTarget(
            name: "CordwoodShipTests",
            dependencies: [
                "CordwoodShip", "CordwoodTrace", "CordwoodStore", "CordwoodCore", "CordwoodFormats",
                "CordwoodURLSession",
            ]),
        .testTarget(
            name: "CordwoodTests",
            dependencies: [
                "Cordwood", "CordwoodEngine", "CordwoodShip", "CordwoodTrace", "CordwoodStore",
                "CordwoodCore",
            ]),
        .testTarget(
            name: "CordwoodLoggingTests",
            dependencies: [
                "CordwoodLogging", "Cordwood", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "CordwoodCollectorTests",
            dependencies: [
                "CordwoodCollector", "CordwoodShip", "CordwoodStore", "CordwoodCore",
            ]),
        .testTarget(
            name: "CordwoodHTTPCaptureTests",
            dependencies: ["CordwoodHTTPCapture", "CordwoodURLSession", "Cordwood"]),
        .testTarget(
            name: "CordwoodCLITests",
            dependencies: [
                "CordwoodCLI", "Cordwood", "CordwoodEngine", "CordwoodTrace", "CordwoodStore",
                "CordwoodCore",
            ]),
    ]
)
