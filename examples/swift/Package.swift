// swift-tools-version: 6.3
import PackageDescription

// A separate package, like a program outside this repository, with Cordwood by path.
let package = Package(
    name: "cordwood-example",
    products: [
        .executable(name: "Example", targets: ["Example"]),
        .executable(name: "Hello", targets: ["Hello"]),
        .executable(name: "Transactions", targets: ["Transactions"]),
        .executable(name: "HTTP", targets: ["HTTP"]),
        .executable(name: "HTTPErrors", targets: ["HTTPErrors"]),
    ],
    dependencies: [.package(name: "cordwood", path: "../..")],
    targets: [
        .executableTarget(
            name: "Example", dependencies: [.product(name: "Cordwood", package: "cordwood")]),
        .executableTarget(
            name: "Hello", dependencies: [.product(name: "Cordwood", package: "cordwood")]),
        .executableTarget(
            name: "Transactions",
            dependencies: [.product(name: "Cordwood", package: "cordwood")]),
        .executableTarget(
            name: "HTTP",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "CordwoodHTTPCapture", package: "cordwood"),
            ]),
        .executableTarget(
            name: "HTTPErrors",
            dependencies: [
                .product(name: "Cordwood", package: "cordwood"),
                .product(name: "CordwoodHTTPCapture", package: "cordwood"),
                .product(name: "CordwoodURLSession", package: "cordwood"),
            ]),
    ]
)
