# A package is named after what it is built of: the module computes the name from the checkout that it
# is part of. So a plan and a destroy need no package, two machines plan the same, and a package of
# other sources is none of those that are asked for. infra/package/files.py computes the same names.
locals {
  package_root = "${path.module}/../../.."

  package_sources = {
    functions = ["functions/**/*.py", "infra/package/*.py", "shared/bellhop/**/*.lua", "shared/bellhop/**/*.py", "pyproject.toml", "requirements.lock"]
    layer     = ["infra/package/*.py", "shared/bellhop/adapters/programs/*.py", "requirements.lock"]
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
      # The object whose sum was verified, and no other that somebody writes in its place.
      s3_version = try(coalesce(data.aws_s3_object.package[each].version_id), null)
    }
  }

  # S3 has sums in base 64, SHA256SUMS in base 16: three digits of one are two of the other.
  base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

  package_sums = {
    for line in split("\n", coalesce(var.package_sums, "-")) : substr(line, 66, -1) => format("%s=", substr(join("", [
      for digits in regexall("...", "${substr(line, 0, 64)}00") :
      "${substr(local.base64, floor(parseint(digits, 16) / 64), 1)}${substr(local.base64, parseint(digits, 16) % 64, 1)}"
    ]), 0, 43)) if can(regex("^[0-9a-f]{64}  .", line))
  }

  # Packages that the folder has, but of other sources, or with other sums than its list has.
  stale_packages = var.packages == null ? [] : length(fileset(var.packages, "*.zip")) == 0 ? [] : [
    for each, name in local.package_names : name
    if !try(strcontains(file("${var.packages}/SHA256SUMS"), "${filesha256("${var.packages}/${name}")}  ${name}\n"), false)
  ]
}

data "aws_s3_object" "package" {
  for_each = var.package_bucket == null ? {} : local.package_names

  bucket        = var.package_bucket
  key           = "${var.package_prefix}${each.value}"
  checksum_mode = "ENABLED"

  lifecycle {
    postcondition {
      condition     = self.checksum_sha256 == lookup(local.package_sums, each.value, "-")
      error_message = "The object ${self.key} of the bucket ${self.bucket} does not have the SHA-256 sum that package_sums lists for ${each.value}: upload the package of this release again, with `aws s3api put-object --checksum-algorithm SHA256`."
    }
  }
}
