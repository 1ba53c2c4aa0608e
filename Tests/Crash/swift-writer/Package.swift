// swift-tools-version: 6.3
import PackageDescription

// The kill test's writer as a Swift host: Cordwood by path, and swift-log over it.
let package = Package(
    name: "cordwood-crash-swift",
    products: [.executable(name: "Writer", targets: ["Writer"])],
    dependencies: [
        .package(name: "cordwood", path: "../../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    ],
    targets: [
        .executableTarget(
            name: "Writer",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "CordwoodLogging", package: "cordwood"),
                .product(name: "Logging", package: "swift-log"),
            ])
    ]
)
