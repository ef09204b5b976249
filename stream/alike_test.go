package stream

import (
	"testing"
	"time"

	"edge/online"
)

// A class that differs from another one in spelling alone is reported when it comes, with the
// remedy; other classes are not.
func TestAlikeClasses(t *testing.T) {
	in("of labels", t, func(t *testing.T) {
		r := one(t)
		for _, label := range []string{"ok", "worn", "1", "OK", "1.0"} {
			r.send(p7, `{"features":[1,0],"label":"`+label+`"}`)
			time.Sleep(time.Second)
			r.node.Notify(online.Notice{Model: "bearing", Kind: online.NoticeClassAdded, Detail: label})
		}
		const remedy = ": if they are one class, send one spelling, or give a map of all labels, and remove the new class"
		equal(t, "events", r.events(), []string{
			"class_added: ok", "class_added: worn", "class_added: 1",
			"class_added: OK", `class_alike: "OK" beside "ok"` + remedy,
			"class_added: 1.0", `class_alike: "1.0" beside "1"` + remedy,
		})
	})
}
