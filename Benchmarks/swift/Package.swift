// swift-tools-version: 6.3
import PackageDescription

// A separate package, like a program outside this repository, with Cordwood by path.
let package = Package(
    name: "cordwood-bench-swift",
    products: [.executable(name: "HotSwift", targets: ["HotSwift"])],
    dependencies: [
        .package(name: "cordwood", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    ],
    targets: [
        .target(name: "Counting"),
        .executableTarget(
            name: "HotSwift",
            dependencies: [
                "Counting",
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "CordwoodLogging", package: "cordwood"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        .executableTarget(
            name: "HTTPHooks",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "CordwoodHTTPCapture", package: "cordwood"),
            ]),
    ]
)
