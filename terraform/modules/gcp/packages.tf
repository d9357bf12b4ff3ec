# A package is named after what it is built of: the module computes the name from the checkout that it
# is part of. So a plan and a destroy need no package, two machines plan the same, and a package of
# other sources is none of those that are asked for. infra/package/files.py computes the same name.
locals {
  package_root    = "${path.module}/../../.."
  package_sources = ["functions/**/*.py", "infra/package/*.py", "shared/bellhop/**/*.lua", "shared/bellhop/**/*.py", "pyproject.toml", "requirements.lock"]

  build_id = substr(sha256(join("", [
    for file in sort(flatten([for each in local.package_sources : tolist(fileset(local.package_root, each))])) :
    "${file} ${filesha256("${local.package_root}/${file}")}\n"
  ])), 0, 12)

  packages = {
    for stage in keys(local.stages) : stage => "${stage}${var.cel && contains(local.judging, stage) ? "-cel" : ""}-${local.build_id}.zip"
  }

  # Packages that the folder has, but of other sources, or with other sums than its list has.
  stale_packages = length(fileset(var.packages, "*.zip")) == 0 ? [] : [
    for name in values(local.packages) : name
    if !try(strcontains(file("${var.packages}/SHA256SUMS"), "${filesha256("${var.packages}/${name}")}  ${name}\n"), false)
  ]
}
