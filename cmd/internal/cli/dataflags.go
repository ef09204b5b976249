package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"edge/internal/dataset"
)

// AddDataFlags adds the flags of a data file's format; labelHelp is the help text
// of --label.
func AddDataFlags(cmd *cobra.Command, d *dataset.Options, labelHelp string) {
	f := cmd.Flags()
	f.StringVar(&d.Label, "label", "", labelHelp)
	f.StringSliceVar(&d.Columns, "columns", nil, "the features: `NAMES` or numbers of columns, such as a,b or 2-9 (default all but the label)")
	f.StringSliceVar(&d.Ignore, "ignore", nil, "`NAMES` or numbers of columns that are left out")
	f.StringVar(&d.SeparatorWord, "separator", "", "`CHARACTER` between the cells: , ; | tab or space (default the one that the file has)")
	f.StringVar(&d.DecimalWord, "decimal", "", "decimal `SIGN`, point or comma (default the one that the file has)")
	f.StringVar(&d.Header, "header", "auto", "`WHETHER` the first line names the columns: yes, no or auto")
}

// AddRawFlags adds the flags of files whose columns are signals.
func AddRawFlags(cmd *cobra.Command, d *dataset.Options) {
	f := cmd.Flags()
	f.StringVar(&d.Stream, "stream", "", "`NAME` of the stream whose signals the file has (default the one with signals)")
	AddOriginFlags(cmd, d)
}

// AddOriginFlags adds the flags of the columns with the time and the device of a row.
func AddOriginFlags(cmd *cobra.Command, d *dataset.Options) {
	f := cmd.Flags()
	f.StringVar(&d.TimeColumn, "time", "", "`NAME` of the column of the times (default, in a file of signals, that of the stream, or t, ts, time, timestamp, …)")
	f.StringVar(&d.DeviceColumn, "device", "", "`NAME` of the column of the device (default, in a file of signals, one called device)")
}

// SelectionFlags adds the flags that select the rows of a data file and their order.
func SelectionFlags(cmd *cobra.Command, s *dataset.Selection) {
	f := cmd.Flags()
	f.IntVar(&s.First, "first", 0, "only the first `N` rows, after the shuffle (0: all)")
	f.Var(seedFlag{&s.Shuffle}, "shuffle", "shuffle the whole file by this `SEED`")
}

// seedFlag is a flag whose value is nil where it is not given.
type seedFlag struct{ to **uint64 }

func (f seedFlag) String() string {
	if f.to == nil || *f.to == nil {
		return ""
	}
	return strconv.FormatUint(**f.to, 10)
}

func (f seedFlag) Set(text string) error {
	seed, err := strconv.ParseUint(text, 0, 64)
	if err == nil {
		*f.to = &seed
	}
	return err
}

func (f seedFlag) Type() string { return "uint64" }
