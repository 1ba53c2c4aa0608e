// swift-tools-version: 6.3
import PackageDescription

// A separate package, like a program outside this repository, with Cordwood by path.
let package = Package(
    name: "cordwood-hummingbird",
    dependencies: [
        .package(name: "cordwood", path: "../.."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.0.0"),
    ],
    targets: [
        .executableTarget(
            name: "Inbound",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ])
    ]
)
