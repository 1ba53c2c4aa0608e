// swift-tools-version: 6.2
import PackageDescription

// A client of its own, as a program outside this repository would be: Cordwood by path.
let package = Package(
    name: "cordwood-bench-swift",
    dependencies: [
        .package(name: "cordwood", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "Hot",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood")
            ])
    ]
)
