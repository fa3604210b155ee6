package watch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metier-run/metier/skill"
	"github.com/metier-run/metier/skill/watch"
)

func ExampleRun() {
	dir, err := os.MkdirTemp("", "skills")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	registry, err := skill.Open(ctx, skill.Options{Roots: []skill.Root{{Dir: dir}}})
	if err != nil {
		fmt.Println(err)
		return
	}

	changed := make(chan *skill.Snapshot)
	ended := make(chan error)
	go func() {
		ended <- watch.Run(ctx, registry, watch.Options{Changed: func(s *skill.Snapshot) { changed <- s }})
	}()

	pdf := filepath.Join(dir, "pdf")
	if err := os.Mkdir(pdf, 0o755); err != nil {
		fmt.Println(err)
	}
	if err := os.WriteFile(filepath.Join(pdf, "SKILL.md"), []byte("---\nname: pdf\ndescription: Fill in PDF forms.\n---\n"), 0o644); err != nil {
		fmt.Println(err)
	}
	for _, k := range (<-changed).Skills() {
		fmt.Println(k.Name)
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// pdf
	// <nil>
}
