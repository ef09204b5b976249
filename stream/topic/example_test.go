package topic_test

import (
	"fmt"

	"edge/stream/topic"
)

func ExampleParseTemplate() {
	t, err := topic.ParseTemplate("factory/{device}/{sensor}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Names, t.Filter(), t.Capture("factory/p7/vibration"))
	// Output: [device sensor] factory/+/+ [p7 vibration]
}

func ExampleRouter() {
	var r topic.Router[string]
	r.Add("factory/+/vibration", "vibration")
	r.Add("factory/#", "everything")
	fmt.Println(r.Find(nil, "factory/p7/vibration"), r.Find(nil, "factory/p7/label"))
	// Output: [vibration everything] [everything]
}

func ExampleSubscriptions() {
	subscribe, overlaps := topic.Subscriptions([]string{"a/b", "a/+", "+/b"})
	fmt.Println(subscribe, overlaps)
	// Output: [+/b a/+] [[+/b a/+]]
}
