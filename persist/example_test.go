//go:build unix

package persist_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"edge/online"
	"edge/persist"
)

var shape = online.Config{Features: []string{"rms", "kurtosis"}, Inducing: 50}.Shape()

// exampleFile creates a state file with two records of the model "bearing".
func exampleFile() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "edge")
	check(err)
	path = filepath.Join(dir, "edge.db")
	store, err := persist.Open(path, persist.Options{})
	check(err)
	_, err = store.Load("bearing", shape)
	check(err)
	check(store.Commit(&online.Commit{Records: []online.Record{
		{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: 11, X: []float64{0.8, 3.9}, Label: "worn"}},
		{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: 12, X: []float64{0.1, 3.0}, Label: "ok"}},
	}}))
	check(store.Close())
	return path, func() { _ = os.RemoveAll(dir) }
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A store commits two records and a checkpoint after the first; a second store
// loads the checkpoint and the record after it.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "edge")
	check(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "edge.db")

	store, err := persist.Open(path, persist.Options{MaxSize: 64 << 20})
	check(err)
	_, err = store.Load("bearing", shape) // adds the model
	check(err)
	c := &online.Commit{Records: []online.Record{
		{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: 11, X: []float64{0.8, 3.9}, Label: "worn"}},
		{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: 12, X: []float64{0.1, 3.0}, Label: "ok"}},
	}}
	check(store.Commit(c)) // durable now
	fmt.Println("committed up to", c.Records[1].Seq)
	check(store.Checkpoint("bearing", 1, []byte("state after record 1")))
	check(store.Close())

	store, err = persist.Open(path, persist.Options{})
	check(err)
	defer store.Close()
	r, err := store.Load("bearing", shape)
	check(err)
	fmt.Printf("%s, then %d record: %s\n", r.State, len(r.Records), r.Records[0].Label)
	fmt.Println("seen 12:", store.Seen("bearing", 12), "seen 13:", store.Seen("bearing", 13))
	// Output:
	// committed up to 2
	// state after record 1, then 1 record: ok
	// seen 12: true seen 13: false
}

func ExampleOpenReadOnly() {
	path, remove := exampleFile()
	defer remove()
	store, err := persist.OpenReadOnly(path, persist.Options{})
	check(err)
	defer store.Close()
	models, err := store.Models()
	check(err)
	for _, model := range models {
		info, err := store.Info(model)
		check(err)
		fmt.Printf("%s: records %d to %d, %d checkpoints\n", model, info.First, info.Last, len(info.Checkpoints))
	}
	// Output: bearing: records 1 to 2, 0 checkpoints
}

// A state file is removed while a store has it open: the store writes it anew, and
// one commit reports the loss.
func ExampleStore_Commit() {
	path, remove := exampleFile()
	defer remove()
	store, err := persist.Open(path, persist.Options{})
	check(err)
	defer store.Close()
	check(os.Remove(path))
	fmt.Println("missing:", errors.Is(store.Commit(&online.Commit{}), persist.ErrMissing))
	fmt.Println("again:", store.Commit(&online.Commit{}))
	_, err = os.Stat(path)
	fmt.Println("stat:", err)
	// Output:
	// missing: true
	// again: <nil>
	// stat: <nil>
}

func ExampleBackup() {
	path, remove := exampleFile()
	defer remove()
	_, err := persist.Backup(path, path+".backup")
	check(err)
	check(os.Remove(path))

	kept, err := persist.Restore(path+".backup", path)
	check(err)
	fmt.Printf("replaced file: %q\n", kept)
	store, err := persist.Open(path, persist.Options{})
	check(err)
	defer store.Close()
	r, err := store.Load("bearing", shape)
	check(err)
	fmt.Println(len(r.Records), "records")
	// Output:
	// replaced file: ""
	// 2 records
}

func ExampleVerify() {
	path, remove := exampleFile()
	defer remove()
	outcome, err := persist.Verify(path, nil)
	check(err)
	fmt.Println("problems before:", len(outcome.Problems))

	data, err := os.ReadFile(path)
	check(err)
	clear(data[:4096]) // a disk loses the first page
	check(os.WriteFile(path, data, 0o600))
	outcome, err = persist.Verify(path, nil)
	check(err)
	fmt.Println("first problem:", outcome.Problems[0])
	for _, m := range outcome.Models {
		fmt.Printf("%s: records %d to %d, a repair would lose %d\n", m.Model, m.First, m.Last, m.Loss.Samples)
	}
	// Output:
	// problems before: 0
	// first problem: meta page 0 is not a meta page: state file is damaged
	// bearing: records 1 to 2, a repair would lose 0
}
