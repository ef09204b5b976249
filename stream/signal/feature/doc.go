// Package feature computes the features of one window of one signal: n numbers in the
// order of time become a few numbers that describe their level, spread, shape, course and
// spectrum. An Extractor does so for a list of features; Correlation compares two signals.
//
//	names.go        the table of features with their groups
//	extractor.go    Extractor
//	window.go       results that features share: mean, deviations, lagged products, order, …
//	spectrum.go     the power spectrum of a window
//	correlation.go  Correlation
//
// A window has the values a_0 … a_{n−1}, the mean m, the deviations b = a − m and the
// variance s² = Σb²/n. docs/reference/features.md defines every feature. Four rules hold
// for all of them:
//
//   - Sums are in the order of the rows, in two passes, the mean first. Products are
//     rounded before they are added, so that processors that fuse the two (arm64) give
//     the same bits as those that do not. The spectrum, from gonum's transform, is the
//     same within one program only.
//   - A window is constant if all values are equal or s ≤ 1e-12·max(1, |m|). What would be
//     divided by s has a fixed value then.
//   - A value beyond ±1e70 counts as ±1e70. So every feature of finite values is finite,
//     the fourth powers of log_kurtosis included.
//   - Frequencies are in cycles a row: 0.5 is the highest.
//
// References: Hjorth, EEG analysis based on time domain properties (1970), for mobility;
// Hyndman and Fan, Sample quantiles in statistical packages (1996), type 7; Welch, The use
// of fast Fourier transform for the estimation of power spectra (1967), for the scale of
// the power.
package feature
