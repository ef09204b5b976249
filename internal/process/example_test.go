package process_test

import (
	"fmt"

	"edge/internal/process"
)

func ExampleVersion_String() {
	v := process.Version{Version: "v1.4.0", Commit: "7ac77b7f0e5d2c4b", Go: "go1.26.0", OS: "linux", Arch: "arm", ARM: "7"}
	fmt.Println(v)
	// Output: edge v1.4.0, commit 7ac77b7f0e5d, go1.26.0, linux/armv7
}
