package htmlreport_test

import (
	"fmt"
	"strings"
	"time"

	"edge/internal/report"
	"edge/internal/report/htmlreport"
	"edge/online/score"
)

// A page is one HTML file.
func ExamplePage_Write() {
	var judge score.Judge
	for i := range 100 {
		judge.Add([]float64{0.75, 0.25}, i%2)
	}
	r := &report.Report{Dataset: "room"}
	r.Judged(judge.Scores([]string{"idle", "busy"}), report.Curve{})
	var b strings.Builder
	err := (&htmlreport.Page{Title: "Room", Date: time.Now(), Reports: []*report.Report{r}}).Write(&b)
	fmt.Println(err, strings.Count(b.String(), "<figure>"), "charts")
	// Output:
	// <nil> 3 charts
}
