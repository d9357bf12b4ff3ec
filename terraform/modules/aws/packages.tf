# A package is named after what it is built of: the module computes the name from the checkout that it
# is part of. So a plan and a destroy need no package, two machines plan the same, and a package of
# other sources is none of those that are asked for. infra/package/files.py computes the same names.
locals {
  package_root = "${path.module}/../../.."

  package_sources = {
    functions = ["functions/**/*.py", "infra/package/*.py", "shared/bellhop/**/*.lua", "shared/bellhop/**/*.py", "pyproject.toml", "requirements.lock"]
    layer     = ["infra/package/*.py", "shared/bellhop/programs/*.py", "requirements.lock"]
  }

  build_ids = {
    for kind, patterns in local.package_sources : kind => substr(sha256(join("", [
      for file in sort(flatten([for each in patterns : tolist(fileset(local.package_root, each))])) :
      "${file} ${filesha256("${local.package_root}/${file}")}\n"
    ])), 0, 12)
  }

  package_names = {
    for each in setunion(
      [for architecture in values(local.architectures) : "functions-${architecture}"],
      [for layer in local.layers : "layer-${layer}"],
    ) : each => "${each}-${local.build_ids[split("-", each)[0]]}.zip"
  }

  # Where each package is: a file, or an object in S3.
  packages = {
    for each, name in local.package_names : each => {
      filename  = var.packages == null ? null : "${var.packages}/${name}"
      s3_bucket = var.package_bucket
      s3_key    = var.package_bucket == null ? null : "${var.package_prefix}${name}"
    }
  }

  # Packages that the folder has, but of other sources, or with other sums than its list has.
  stale_packages = var.packages == null ? [] : length(fileset(var.packages, "*.zip")) == 0 ? [] : [
    for each, name in local.package_names : name
    if !try(strcontains(file("${var.packages}/SHA256SUMS"), "${filesha256("${var.packages}/${name}")}  ${name}\n"), false)
  ]
}
