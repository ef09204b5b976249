# Writes data sets of the R packages mlbench, kernlab and modeldata as CSV files, the label in the
# last column, words as the numbers of their levels: Rscript docs/results/packages.R FOLDER
folder <- commandArgs(TRUE)[1]
sets <- list(
  mlbench = c(BreastCancer = "Class", DNA = "Class", HouseVotes84 = "Class", Ionosphere = "Class",
    LetterRecognition = "lettr", PimaIndiansDiabetes = "diabetes", Shuttle = "Class", Sonar = "Class",
    Soybean = "Class", Vehicle = "Class", Zoo = "type"),
  kernlab = c(musk = "Class", promotergene = "Class", spam = "type", ticdata = "CARAVAN"),
  modeldata = c(ad_data = "Class", attrition = "Attrition", cells = "class", credit_data = "Status",
    hpc_data = "class", lending_club = "Class", mlc_churn = "churn", parabolic = "class",
    penguins = "species", scat = "Species", two_class_dat = "Class"))
for (package in names(sets)) for (name in names(sets[[package]])) {
  data(list = name, package = package)
  rows <- as.data.frame(get(name))
  label <- as.character(rows[[sets[[package]][name]]])
  rows[c(sets[[package]][name], "Id", if (name == "cells") "case")] <- NULL
  rows[] <- lapply(rows, as.numeric)
  write.csv(cbind(rows, label), file.path(folder, paste0(name, ".csv")), row.names = FALSE, quote = FALSE, na = "")
}
